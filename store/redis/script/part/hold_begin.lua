-- What is about holds is in a function, because a script has at most 200 locals.
holding = (function()

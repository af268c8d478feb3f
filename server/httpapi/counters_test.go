package httpapi

// countersTried are calls for TestAnswersAreAsDescribed.
var countersTried = []tried{}

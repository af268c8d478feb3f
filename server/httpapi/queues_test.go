package httpapi

// queuesTried are calls for TestAnswersAreAsDescribed.
var queuesTried = []tried{}

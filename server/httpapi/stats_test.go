package httpapi

// statsTried are calls for TestAnswersAreAsDescribed.
var statsTried = []tried{}

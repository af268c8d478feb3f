package httpapi

// alertsTried are calls for TestAnswersAreAsDescribed.
var alertsTried = []tried{}

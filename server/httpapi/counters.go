package httpapi

var counterRoutes = []route{}

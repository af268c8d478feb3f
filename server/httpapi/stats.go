package httpapi

var statsRoutes = []route{}

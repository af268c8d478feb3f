package httpapi

var alertRoutes = []route{}

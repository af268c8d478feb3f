package httpapi

var queueRoutes = []route{}

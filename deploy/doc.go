// Package deploy has what runs beside weir: alert rules for Prometheus and a dashboard
// for Grafana. There is no code in it but the tests that keep them true.
package deploy

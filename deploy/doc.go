// Package deploy has what operators need: alert rules for Prometheus, a dashboard for
// Grafana, a compose file, a systemd service and packages. There is no code in it but the
// tests that keep them true; what makes the packages is a module of its own.
package deploy

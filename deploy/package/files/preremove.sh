#!/bin/sh
# Before removal, but not before an upgrade.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now weir.service
	fi
	;;
esac

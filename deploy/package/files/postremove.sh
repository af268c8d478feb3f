#!/bin/sh
# After removal. dpkg purges what weir has written; the user stays, as is usual.
set -e
if [ "$1" = purge ]; then
	rm -rf /var/lib/weir /etc/weir/rules.yaml.history
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi

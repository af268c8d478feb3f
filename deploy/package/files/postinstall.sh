#!/bin/sh
# After installation. dpkg says "configure" and the previous version; rpm says how many
# versions there are.
set -e
case "$1 $2" in
"configure " | "1 ") first=yes ;;
"configure "* | [2-9]*) first=no ;;
*) exit 0 ;;
esac
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers /usr/lib/sysusers.d/weir.conf
elif ! id weir >/dev/null 2>&1; then
	useradd --system --user-group --no-create-home --home-dir /var/lib/weir --shell /usr/sbin/nologin weir
fi
if [ $first = yes ]; then
	# weir reads its configuration, and writes rules that are changed in the dashboard. The user
	# of an earlier installation may have put links there, to files that are not for it.
	chmod 0700 /etc/weir
	for file in weir.yaml:0640 rules.yaml:0660; do
		path=/etc/weir/${file%:*}
		if [ -f "$path" ] && [ ! -L "$path" ]; then
			chgrp weir "$path"
			chmod "${file#*:}" "$path"
		fi
	done
	chgrp weir /etc/weir
	chmod 0770 /etc/weir
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	[ $first = yes ] || systemctl try-restart weir.service
fi
if [ $first = yes ]; then
	echo "Write your rules into /etc/weir/rules.yaml, and start weir: systemctl enable --now weir"
fi

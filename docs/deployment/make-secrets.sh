#!/bin/sh
# Write the secrets of compose.yaml into the folder secrets, once: a second run changes nothing.
set -eu
cd "$(dirname "$0")"
if [ -e secrets ]; then
    echo "secrets exists already." >&2
    exit 2
fi

random() {
    python3 -c "import secrets; print(secrets.token_urlsafe($1))"
}

umask 077
folder=$(mktemp -d ./secrets.XXXXXX)
trap 'rm -rf "$folder"' EXIT
database=$(random 32)
broker=$(random 32)
random 64 > "$folder/secret-key"
echo "$database" > "$folder/database-password"
echo "postgres://watcher:$database@database:5432/watcher" > "$folder/database-url"
echo "amqp://watcher:$broker@broker:5672/watcher" > "$folder/broker-url"
# An action may take an hour and be suspended: its message is acknowledged at its end (in milliseconds).
cat > "$folder/rabbitmq.conf" << CONFIGURATION
default_user = watcher
default_pass = $broker
default_vhost = watcher
consumer_timeout = 86400000
CONFIGURATION
# The folder is closed to other users of this machine; within the containers the files have to be readable.
chmod 444 "$folder"/*
mv "$folder" secrets

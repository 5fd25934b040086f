#!/usr/bin/env bash
# Updates the list of agents that parlor is built with from the registry of the protocol. Run by hand, and review the
# difference: nothing of it is checked when parlor is built. Needs curl and jq.
set -euo pipefail
cd "$(dirname "$0")/.."

url="${1:-https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json}"
target=src/host/registry/snapshot.json
fresh="$(mktemp)"
trap 'rm -f "$fresh"' EXIT

curl --fail --silent --show-error --location --proto '=https,http' "$url" |
    jq --indent 1 --arg day "$(date +%Y-%m-%d)" \
        '{version, day: $day, agents: [.agents[] | {id, name, version, description, website: (.website // .repository), distribution}]}' \
        >"$fresh"
# An empty list would hide all agents.
jq --exit-status '.agents | length > 0' "$fresh" >/dev/null
cp "$fresh" "$target"
git --no-pager diff --stat -- "$target"

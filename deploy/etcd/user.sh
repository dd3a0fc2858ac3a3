#!/bin/sh
# A user that may use the keys of one Leasehold cluster and nothing else. Run it once, as etcd's root user, with
# ETCDCTL_ENDPOINTS (and ETCDCTL_CACERT) in the environment:
#   ETCDCTL_API=3 ./user.sh main < journal-password
set -eu
cluster=${1:-main}
read -r password
etcdctl role add leasehold
etcdctl role grant-permission leasehold --prefix=true readwrite "/leasehold/$cluster/"
printf '%s\n' "$password" | etcdctl user add leasehold --interactive=false
etcdctl user grant-role leasehold leasehold

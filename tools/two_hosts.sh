#!/bin/bash
# Run a command beside two hosts, h1 and h2, that Open MPI reaches as it reaches others: network
# namespaces of this Linux with names and addresses of their own. Needs root and iproute2, and
# leaves nothing behind.
#   sudo bash tools/two_hosts.sh poprun --host h1,h2 --num-instances 2 python examples/digits_instances.py
set -eu
if [ -z "${TWO_HOSTS:-}" ]; then
  TWO_HOSTS=$(mktemp -d)
  trap 'rm -rf "$TWO_HOSTS"' EXIT
  export TWO_HOSTS
  unshare --mount --net --uts --pid --fork --mount-proc bash "$0" "$@"
  exit
fi

mount -t tmpfs none /run
ip link add name bridge type bridge
ip address add 10.9.0.100/24 dev bridge
ip link set bridge up
ip link set lo up
cp /etc/hosts "$TWO_HOSTS/hosts"
for number in 1 2; do
  ip netns add "h$number"
  ip link add "v$number" type veth peer name "w$number" netns "h$number"
  ip link set "v$number" master bridge up
  ip -n "h$number" address add "10.9.0.$number/24" dev "w$number"
  ip -n "h$number" link set "w$number" up
  ip -n "h$number" link set lo up
  echo "10.9.0.$number h$number" >> "$TWO_HOSTS/hosts"
done
mount --bind "$TWO_HOSTS/hosts" /etc/hosts

# In place of ssh: [OPTION...] HOST COMMAND...
cat > "$TWO_HOSTS/agent" <<'AGENT'
#!/bin/bash
while [[ $1 == -* ]]; do shift; done
host=$1
shift
exec ip netns exec "$host" unshare --uts bash -c "hostname $host; $*"
AGENT
chmod +x "$TWO_HOSTS/agent"
export PRTE_MCA_plm_ssh_agent="$TWO_HOSTS/agent"
export PRTE_MCA_prte_if_include=10.9.0.0/24 OMPI_MCA_btl_tcp_if_include=10.9.0.0/24
"$@"

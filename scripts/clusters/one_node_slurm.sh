#!/usr/bin/env bash
# A Slurm cluster of one node, this machine, from Debian packages: to test --multirun, not to use it.
#
#   scripts/clusters/one_node_slurm.sh up FOLDER      installs (as root), starts, waits until it takes jobs
#   export SLURM_CONF=FOLDER/slurm.conf
#   scripts/clusters/one_node_slurm.sh down FOLDER    stops what `up` started
#
# With accounting (slurmdbd on MariaDB): submitit asks sacct what became of a job, and without it a
# killed job never ends. Every daemon listens on the loopback interface alone.
set -euo pipefail

usage() { sed -n '2,9p' "$0" >&2; exit 2; }
[ $# -eq 2 ] || usage
action=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
host=$(hostname -s)
export SLURM_CONF=$folder/slurm.conf
CONTROLLER_PORT=16817 NODE_PORT=16818 ACCOUNTING_PORT=16819 DATABASE_PORT=13306

until_true() {  # until_true WHAT COMMAND...: at most 20 s
  local what=$1; shift
  local end=$((SECONDS + 20))
  while [ $SECONDS -lt $end ]; do "$@" >/dev/null 2>&1 && return 0; sleep 0.2; done
  echo "error: $what did not start; see $folder/log" >&2
  exit 1
}

install_packages() {
  local missing=() program
  for program in slurmctld slurmd slurmdbd mariadbd munged; do
    command -v $program >/dev/null || missing+=("$program")  # several names at once: one is enough
  done
  [ ${#missing[@]} = 0 ] && return
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    munge slurm-client slurmctld slurmd slurmdbd mariadb-server >/dev/null
}

write_settings() {
  cat > "$folder/slurmdbd.conf" <<CONF
AuthType=auth/munge
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=$ACCOUNTING_PORT
CommunicationParameters=NoInAddrAny
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$DATABASE_PORT
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
LogFile=$folder/log/slurmdbd.log
PidFile=$folder/slurmdbd.pid
CONF
  chmod 600 "$folder/slurmdbd.conf"
  cat > "$folder/slurm.conf" <<CONF
ClusterName=local
SlurmctldHost=$host(127.0.0.1)
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmctldPort=$CONTROLLER_PORT
SlurmdPort=$NODE_PORT
AuthType=auth/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort=$ACCOUNTING_PORT
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
InactiveLimit=0
KillWait=5
OverTimeLimit=0
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=8000 State=UNKNOWN
PartitionName=debug Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
}

start_database() {
  local data=$folder/data socket=$folder/data/s.sock
  if [ ! -d "$data/mysql" ]; then
    mkdir -p "$data"
    # As root: FOLDER may lie where the user mysql may not look, as mktemp makes it.
    mysql_install_db --no-defaults --datadir="$data" --user=root --skip-test-db >"$folder/log/database.log" 2>&1 ||
      { echo "error: MariaDB was not set up; see $folder/log/database.log" >&2; exit 1; }
  fi
  mariadbd --no-defaults --datadir="$data" --user=root --socket="$socket" --port=$DATABASE_PORT \
    --bind-address=127.0.0.1 --pid-file="$data/mariadb.pid" >>"$folder/log/database.log" 2>&1 </dev/null &
  until_true MariaDB mariadb -uroot -S "$socket" -e 'select 1'
  for from in 127.0.0.1 localhost; do
    mariadb -uroot -S "$socket" -e "create database if not exists slurm_acct_db;
      create user if not exists 'slurm'@'$from' identified by 'slurm';
      grant all on slurm_acct_db.* to 'slurm'@'$from';"
  done
}

takes_jobs() { sinfo --noheader --format=%T | grep -q idle; }

up() {
  install_packages
  mkdir -p "$folder"/{state,spool,log}
  chmod 755 "$folder"
  install -d -o munge -g munge -m 0755 /run/munge
  if ! munge --no-input >/dev/null 2>&1; then
    runuser -u munge -- munged --pid-file=/run/munge/munged.pid
    ln -sfn /run/munge/munged.pid "$folder/munged.pid"  # started here: stopped by `down`
  fi
  write_settings
  start_database
  slurmdbd
  until_true slurmdbd sacctmgr --noheader list cluster
  [ -n "$(sacctmgr --noheader list cluster local)" ] || sacctmgr --immediate add cluster local >/dev/null
  slurmctld -i
  slurmd
  until_true "the node" takes_jobs
  sinfo
}

down() {
  local pid
  for file in slurmd.pid slurmctld.pid slurmdbd.pid data/mariadb.pid munged.pid; do
    [ -s "$folder/$file" ] || continue
    pid=$(cat "$folder/$file")
    kill "$pid" 2>/dev/null || continue
    for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.2; done
  done
}

case $action in up) up ;; down) down ;; *) usage ;; esac

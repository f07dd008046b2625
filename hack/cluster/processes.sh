# Processes are known by pid and start time, so that a pid that is somebody else's by now is never signalled.

start_time() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  # What follows the name, which may hold anything.
  # shellcheck disable=SC2086
  set -- ${stat##*) }
  [ "$1" != Z ] && echo "${20}"
}

# start NAME COMMAND…: in a session of its own, without the lock's descriptor.
start() {
  local name=$1 pid
  shift
  (cd "$work" && exec setsid "$@" >"$work/logs/$name.log" 2>&1 </dev/null 9>&-) &
  pid=$!
  echo "$pid $(start_time "$pid")" >"$work/pids/$name"
}

alive() {
  local pid started
  read -r pid started <"$work/pids/$1" 2>/dev/null && [ "$(start_time "$pid")" = "$started" ]
}

# stop NAME [SECONDS]: TERM, and after that long KILL.
stop() {
  local name=$1 seconds=${2:-5} pid started i
  [ -f "$work/pids/$name" ] || return 0
  # shellcheck disable=SC2034
  read -r pid started <"$work/pids/$name"
  if alive "$name"; then
    kill -TERM "$pid" 2>/dev/null || true
    for ((i = 0; i < seconds * 20; i++)); do
      alive "$name" || break
      sleep 0.05
    done
    if alive "$name"; then
      kill -KILL "$pid" 2>/dev/null || true
      while alive "$name"; do sleep 0.02; done
    fi
  fi
  rm -f "$work/pids/$name"
}

# wait_for WHAT SECONDS PROCESSES COMMAND…: until the command succeeds. A process that dies meanwhile ends it.
wait_for() {
  local what=$1 seconds=$2 processes=$3 i name
  shift 3
  for ((i = 0; i < seconds * 10; i++)); do
    if "$@" >/dev/null 2>&1; then
      return 0
    fi
    for name in $processes; do
      if ! alive "$name"; then
        tail -n 5 "$work/logs/$name.log" >&2
        die "$name ended while $what was waited for: see $work/logs/$name.log"
      fi
    done
    sleep 0.1
  done
  die "$what: not within $seconds s; logs are in $work/logs"
}

status() {
  [ -d "$work/pids" ] || die "no cluster runs"
  local file name pid started rss
  for file in "$work"/pids/*; do
    name=${file##*/}
    # shellcheck disable=SC2034
    read -r pid started <"$file"
    if alive "$name"; then
      rss=$(awk '/VmRSS/ { print int($2 / 1024) }' "/proc/$pid/status")
      echo "$name: pid $pid, $rss MiB"
    else
      echo "$name: ended, see $work/logs/$name.log"
    fi
  done
}

#!/bin/bash
# What the storage server reaches, side by side with nbdkit, as parts of what the file itself gives.
#
#   crates/server/benches/throughput.sh FOLDER [ROUNDS [SECONDS]]
#
# FOLDER is on the disk that is measured; 4 GiB are written there and removed at the end. Needs
# fio with its NBD engine (Debian: fio), nbdkit, nbdcopy (libnbd-bin), and the program: MILLPOND, or
# target/release/millpond. Each round runs everything once, one after the other: so each figure
# has the file's own of the same round beside it. The table has the mean rate of each, and its ratio
# to the file's own rate: the geometric mean over the rounds, with its 95 % interval (Student's t of
# the ratios' logarithms).
#
# On a machine that does other things at the same time, run it by `chrt --rr 1`, if that may be.
set -eu
folder=$1 rounds=${2:-8} seconds=${3:-3}
millpond=$(realpath "${MILLPOND:-target/release/millpond}")
cd "$folder"
file=$PWD/throughput.img cache=$PWD/throughput.tier warm=$PWD/throughput.warm
socket=$PWD/throughput.sock figures=$PWD/throughput.figures
server=
trap '[ -z "$server" ] || kill "$server" || true; rm -f throughput.{img,tier,warm,sock,figures,out}' EXIT

random() { # what is in front of fio's own arguments is the caller's; prints IOPS
    fio --name=n --rw=randread --iodepth=32 --size=1G --time_based --runtime="$seconds" \
        --output-format=terse --terse-version=3 "$@" 2>/dev/null |
        awk -F';' '$1 == 3 { print $8 }'
}

serve() { # a server's command, which listens at $socket
    rm -f "$socket"
    "$@" >throughput.out 2>&1 &
    server=$!
    for _ in $(seq 100); do [ -S "$socket" ] && return; sleep 0.1; done
    cat throughput.out >&2
    exit 1
}

stop() {
    kill "$server"
    wait "$server" || true
    server=
}

measure() { # bytes of a block, a name, a server's command
    local bytes=$1 name=$2
    shift 2
    # The operating system's cache has nothing of the file.
    dd if="$file" iflag=nocache count=0 status=none
    serve "$@"
    local export=
    [ "$1" != "$millpond" ] || export=disk
    echo "$bytes $name $(random --ioengine=nbd --bs="$bytes" \
        --uri="nbd+unix:///$export?socket=$socket")" >>"$figures"
    stop
}

# Written, so that it has no holes.
dd if=/dev/urandom of="$file" bs=1M count=1024 oflag=direct status=none
: >"$figures"
for bytes in 4096 16384; do
    serve=("$millpond" serve --nbd "unix:$socket" --backing "$file" --block "$bytes")
    # Its file plugin goes by way of the operating system's cache. By itself it can tell that to keep
    # nothing; below the filter, which has a parameter of that name, it cannot, and is faster.
    kit=(nbdkit --foreground --exit-with-parent --unix "$socket")
    # One that has all of it, for the rounds: read once, and stopped.
    rm -f "$warm"
    warmed=("${serve[@]}" --cache "$warm" --cache-size 2GiB)
    serve "${warmed[@]}"
    nbdcopy "nbd+unix:///disk?socket=$socket" null:
    stop
    for _ in $(seq "$rounds"); do
        echo "$bytes file $(random --ioengine=io_uring --direct=1 --bs="$bytes" \
            --filename="$file")" >>"$figures"
        measure "$bytes" serve "${serve[@]}"
        rm -f "$cache"
        measure "$bytes" serve,cache-cold "${serve[@]}" --cache "$cache" --cache-size 2GiB
        measure "$bytes" serve,cache-warm "${warmed[@]}"
        rm -f "$cache"
        measure "$bytes" nbdkit-file "${kit[@]}" file cache=none fadvise=random "$file"
        TMPDIR=$PWD measure "$bytes" nbdkit-file,filter-cold \
            "${kit[@]}" --filter=cache file fadvise=random "$file" \
            cache-on-read=true cache-min-block-size="$bytes"
    done
done
awk '
    { at = $1 " " $2; if (!(at in count)) order[++kinds] = at
      if ($2 == "file") own[$1] = $3
      ratio = log($3 / own[$1]); count[at]++; rate[at] += $3; sum[at] += ratio
      squares[at] += ratio * ratio }
    # Student t, 95 %, for 1 to 30 degrees of freedom.
    BEGIN { split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.16 " \
        "2.145 2.131 2.12 2.11 2.101 2.093 2.086 2.08 2.074 2.069 2.064 2.06 2.056 2.052 2.048 " \
        "2.045 2.042", student, " ") }
    END {
        printf "%6s %-26s %9s  %s\n", "bytes", "what", "IOPS", "part of the file'"'"'s, 95 % interval"
        for (k = 1; k <= kinds; k++) {
            at = order[k]; n = count[at]; mean = sum[at] / n
            free = n - 1 > 30 ? 30 : n - 1
            deviation = n > 1 ? sqrt((squares[at] - n * mean * mean) / (n - 1) / n) : 0
            if (deviation != deviation) deviation = 0
            half = deviation * (n > 1 ? student[free] : 0)
            split(at, words, " ")
            printf "%6s %-26s %9.0f  %.3f (%.3f to %.3f)\n", words[1], words[2], rate[at] / n, \
                exp(mean), exp(mean - half), exp(mean + half)
        }
    }' "$figures"

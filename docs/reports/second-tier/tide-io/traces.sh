# traces of the unified second-tier policy; $1 is the millpond binary, run in an empty folder
M=$1
G="$M trace gen -q"
# page references
$G dynzipf-rw pages=20k refs=2M writes=35% scan=5% theta=0.8 --out p-zipf.parquet
$G dynzipf-rw pages=20k refs=1M writes=35% scan=5% theta=0.8 --seed 5 --out p-zipf1.parquet
$G dynzipf-rw pages=20k refs=2M writes=20% scan=20% theta=1.0 shuffle-every=45 --seed 2 --out p-hot.parquet
$G btree leaves=20k operations=500k writes=30% scans=0.1% theta=0.8 --out p-btree.parquet
$M bench tpcc --warehouses 1 --seed 3 --operations 100000 --no-check -q --json --record p-tpcc.parquet --record-max 6000000 > p-tpcc.json
Y="$M bench ycsb -q --json --rows 200000 --operations 400000 --record-max 3000000"
$Y --distribution zipf --theta 0.9 --updates 50 --record p-ycsb-a.parquet > p-ycsb-a.json
$Y --distribution latest --theta 0.99 --updates 20 --inserts 10 --seed 3 --record p-ycsb-latest.parquet > p-ycsb-latest.json
db2() { $G tier2 --from p-$1.parquet --pool $2 --policy gclock-v2 --dirty 50% --lsn-gap $3 --out $4.parquet; }
my() { $G tier2 --from p-$1.parquet --pool $2 --policy lru --dirty 90% --lsn-gap $3 --readahead --flush-neighbours --out $4.parquet; }
db2 zipf1 2000 100000 zipf-db2-10
db2 zipf 10000 100000 zipf-db2-50
db2 zipf 10000 5000 zipf-db2-50-small
db2 zipf 10000 1000000 zipf-db2-50-large
db2 zipf 18000 100000 zipf-db2-90
my zipf1 2400 100000 zipf-my-12
my zipf1 9600 100000 zipf-my-48
db2 hot 5000 30000 hot-db2-25-small
my hot 4800 200000 hot-my-24
db2 btree 2000 20000 btree-db2-10
my btree 4800 20000 btree-my-24
db2 ycsb-a 1600 30000 ycsb-a-db2-20
my ycsb-latest 2000 30000 ycsb-latest-my-24
db2 tpcc 6000 2000000 tpcc-db2-25-large
my tpcc 3000 200000 tpcc-my-12
my tpcc 6000 200000 tpcc-my-24
my tpcc 6000 20000 tpcc-my-24-small
my tpcc 12000 200000 tpcc-my-48
live() { $M bench tpcc --warehouses 1 --seed $5 --no-check --page-size 4096 --pool $1 --policy gclock-v1 --eviction 'threads(2)' --dirty-share 50% --log on --log-gap $2 --operations $3 --warm-up 1 -q --json --record-storage $4.parquet > $4.json; }
live 10% 64MiB 30000 tpcc-live-10 1
live 10% 512MiB 30000 tpcc-live-10-large 2
live 50% 1280KiB 60000 tpcc-live-50-small 3
live 50% 64MiB 60000 tpcc-live-50 4
live 50% 512MiB 60000 tpcc-live-50-large 5
live 90% 64MiB 100000 tpcc-live-90 6
live 90% 8MiB 100000 tpcc-live-90-small 7

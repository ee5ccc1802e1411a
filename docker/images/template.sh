# Makes /opt/fencepost/kafka.jsa and /opt/fencepost/bootstrap.checkpoint: one node is formatted, started and ended.
set -eu
cd /opt/fencepost
log=/tmp/template.log
kafka="java -Xmx256M $1 -cp /opt/kafka/libs/* -Dlog4j2.configurationFile=/opt/fencepost/log4j2.yaml -Dkafka.logs.dir=/tmp"
set -f # the star of the class path is for Java
$kafka kafka.tools.StorageTool format -t AAAAAAAAAAAAAAAAAAAAAA -c standalone.properties
$kafka -XX:ArchiveClassesAtExit=/opt/fencepost/kafka.jsa kafka.Kafka standalone.properties >$log 2>&1 &
node=$!
tries=0
until grep -q 'Kafka Server started' $log; do
    tries=$((tries + 1))
    if [ $tries -gt 600 ] || ! kill -0 $node; then tail -n 20 $log; exit 1; fi
    sleep 0.2
done
kill $node
wait $node || true
cp data/bootstrap.checkpoint .
rm -rf data
chmod a+r kafka.jsa bootstrap.checkpoint

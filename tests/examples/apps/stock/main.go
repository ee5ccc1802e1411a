// Takes what is ordered out of stock: a line in the journal for each order, and a commit of what is written there.
//
// It tells nothing of what it does, but with -lines: then as JSON lines on standard output. -hasty is how it was written
// at first: what a poll returned is committed, and only then written.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	pollTime  = 500 * time.Millisecond
	pollMost  = 50
	orderTime = 2 * time.Millisecond // the hands of who takes it off the shelf
)

var (
	brokers  = flag.String("brokers", "kafka-1.shop.internal:9092", "host:port, ...")
	group    = flag.String("group", "shop-stock", "the consumer group")
	topic    = flag.String("topic", "orders", "where orders are")
	clientID = flag.String("client-id", "stock", "by which brokers know this process")
	journal  = flag.String("journal", "stock.journal", "the file that orders are written to")
	lines    = flag.Bool("lines", false, "tell what happens, as JSON lines")
	hasty    = flag.Bool("hasty", false, "commit before it is written")
)

type fields map[string]any

var telling sync.Mutex

// A line of what happens now; nothing, unless somebody asked for it.
func tell(name string, more fields) {
	if !*lines {
		return
	}
	telling.Lock()
	defer telling.Unlock()
	line := fields{"timestamp": time.Now().UnixMilli(), "name": name}
	for key, value := range more {
		line[key] = value
	}
	text, err := json.Marshal(line)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
}

func place(r *kgo.Record) fields {
	return fields{"topic": r.Topic, "partition": r.Partition, "offset": r.Offset}
}

func tellRecord(r *kgo.Record) {
	line := place(r)
	line["key"], line["value"] = string(r.Key), string(r.Value)
	for _, header := range r.Headers {
		if header.Key == "fencepost" {
			line["headers"] = fields{header.Key: string(header.Value)}
		}
	}
	tell("record_data", line)
}

func tellPartitions(name string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, client *kgo.Client, changed map[string][]int32) {
		places := []fields{}
		for topic, partitions := range changed {
			for _, partition := range partitions {
				places = append(places, fields{"topic": topic, "partition": partition})
			}
		}
		member, generation := client.GroupMetadata()
		tell(name, fields{"partitions": places, "member_id": member, "generation": generation})
	}
}

// Commit past these records, which are in the order of their offsets.
func commit(client *kgo.Client, records []*kgo.Record) {
	next := map[[2]any]fields{}
	for _, r := range records {
		next[[2]any{r.Topic, r.Partition}] = fields{"topic": r.Topic, "partition": r.Partition, "offset": r.Offset + 1}
	}
	offsets := []fields{}
	for _, offset := range next {
		offsets = append(offsets, offset)
	}
	tell("commit_started", fields{"offsets": offsets})
	err := client.CommitRecords(context.Background(), records...)
	answer := fields{"offsets": offsets, "success": err == nil}
	if err != nil { // another one has the partitions, and writes these orders, too
		log.Println("commit failed:", err)
		answer["error"] = errorName(err)
	}
	tell("offsets_committed", answer)
}

func errorName(err error) string {
	var ofKafka *kerr.Error
	if errors.As(err, &ofKafka) {
		return ofKafka.Message
	}
	return err.Error()
}

// Write what is ordered. An order that is written twice is taken out of stock once: its id tells.
func write(file *os.File, records []*kgo.Record) {
	for _, r := range records {
		var order struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(r.Value, &order); err != nil {
			log.Fatal(err)
		}
		time.Sleep(orderTime)
		if _, err := fmt.Fprintln(file, order.ID); err != nil {
			log.Fatal(err)
		}
		tell("record_processed", place(r))
	}
}

func main() {
	flag.Parse()
	file, err := os.OpenFile(*journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		log.Fatal(err)
	}
	stopped, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(*brokers, ",")...),
		kgo.ClientID(*clientID),
		kgo.ConsumerGroup(*group),
		kgo.ConsumeTopics(*topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(6*time.Second),
		kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(), // what a poll returned is written and committed before it goes to another one
		kgo.OnPartitionsAssigned(tellPartitions("partitions_assigned")),
		kgo.OnPartitionsRevoked(tellPartitions("partitions_revoked")),
		kgo.OnPartitionsLost(tellPartitions("partitions_lost")),
	)
	if err != nil {
		log.Fatal(err)
	}
	tell("startup_complete", fields{"client": "franz-go", "protocol": "cooperative"})
	for stopped.Err() == nil {
		tell("poll_started", nil)
		waiting, over := context.WithTimeout(stopped, pollTime)
		fetches := client.PollRecords(waiting, pollMost)
		over()
		fetches.EachError(func(_ string, _ int32, err error) {
			if waiting.Err() == nil {
				log.Println(err)
				tell("client_error", fields{"error": errorName(err)})
			}
		})
		records := fetches.Records()
		for _, r := range records {
			tellRecord(r)
		}
		if *hasty && len(records) > 0 {
			commit(client, records)
		}
		write(file, records)
		if !*hasty && len(records) > 0 {
			commit(client, records)
		}
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance()
	tell("shutdown_complete", nil)
}

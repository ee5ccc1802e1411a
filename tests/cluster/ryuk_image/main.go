// A program with Ryuk's protocol, for machines that cannot have the image of Ryuk's makers: a client sends labels, and once
// it is gone, the containers, networks and volumes with these labels are removed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const patience = 60 * time.Second

var engine = http.Client{Timeout: patience, Transport: &http.Transport{
	DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", "/var/run/docker.sock")
	},
}}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func ask(method, path string, into any) {
	request, err := http.NewRequest(method, "http://engine/"+path, nil)
	must(err)
	answer, err := engine.Do(request)
	must(err)
	defer answer.Body.Close()
	if into != nil {
		must(json.NewDecoder(answer.Body).Decode(into))
	}
}

func remove(label string) {
	var containers, networks []struct{ Id string }
	var volumes struct{ Volumes []struct{ Name string } }
	filters := "filters=" + url.QueryEscape(fmt.Sprintf(`{"label":[%q]}`, label))
	ask("GET", "containers/json?all=1&"+filters, &containers)
	for _, one := range containers {
		ask("DELETE", "containers/"+one.Id+"?force=1&v=1", nil)
	}
	ask("GET", "networks?"+filters, &networks)
	for _, one := range networks {
		ask("DELETE", "networks/"+one.Id, nil)
	}
	ask("GET", "volumes?"+filters, &volumes)
	for _, one := range volumes.Volumes {
		ask("DELETE", "volumes/"+one.Name, nil)
	}
}

func main() {
	listener, err := net.Listen("tcp", ":8080")
	must(err)
	fmt.Println("Started")
	must(listener.(*net.TCPListener).SetDeadline(time.Now().Add(patience)))
	client, err := listener.Accept()
	must(err)
	var labels []string
	for lines := bufio.NewScanner(client); lines.Scan(); {
		labels = append(labels, strings.TrimPrefix(lines.Text(), "label="))
		fmt.Fprintln(client, "ACK")
	}
	after, err := time.ParseDuration(os.Getenv("RYUK_RECONNECTION_TIMEOUT"))
	must(err)
	time.Sleep(after)
	for _, label := range labels {
		remove(label)
	}
}

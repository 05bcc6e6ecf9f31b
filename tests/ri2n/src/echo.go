// An echo server and its client in Go, which makes its system calls itself.
//
//	echo serve ADDRESS CONNECTIONS
//	echo drive ADDRESS CONNECTIONS BYTES MS    sends BYTES, paced to last about MS, and verifies the echo
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const steps = 50

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	must(err)
	return n
}

func pattern(stream, at int) byte {
	return byte(uint32(at*31+stream*7) * 2654435761 >> 11)
}

func serve(address string, count int) {
	listener, err := net.Listen("tcp", address)
	must(err)
	var all sync.WaitGroup
	for i := 0; i < count; i++ {
		connection, err := listener.Accept()
		must(err)
		if strings.HasPrefix(connection.RemoteAddr().String(), "127.") {
			must(fmt.Errorf("the peer is %v", connection.RemoteAddr()))
		}
		all.Add(1)
		go func() {
			defer all.Done()
			_, err := io.Copy(connection, connection)
			must(err)
			must(connection.Close())
		}()
	}
	all.Wait()
}

func driveOne(address string, stream, bytes, ms int) {
	connection, err := net.Dial("tcp", address)
	must(err)
	if connection.RemoteAddr().String() != address {
		must(fmt.Errorf("connected to %v", connection.RemoteAddr()))
	}
	go func() {
		data := make([]byte, bytes)
		for i := range data {
			data[i] = pattern(stream, i)
		}
		for step := 0; step < steps; step++ {
			_, err := connection.Write(data[bytes*step/steps : bytes*(step+1)/steps])
			must(err)
			time.Sleep(time.Duration(ms) * time.Millisecond / steps)
		}
		must(connection.(*net.TCPConn).CloseWrite())
	}()
	back, err := io.ReadAll(connection)
	must(err)
	if len(back) != bytes {
		must(fmt.Errorf("%d bytes came back", len(back)))
	}
	for i := range back {
		if back[i] != pattern(stream, i) {
			must(fmt.Errorf("byte %d of stream %d is wrong", i, stream))
		}
	}
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == "serve" {
		serve(os.Args[2], number(os.Args[3]))
		return
	}
	if len(os.Args) != 6 || os.Args[1] != "drive" {
		os.Exit(2)
	}
	count, bytes := number(os.Args[3]), number(os.Args[4])
	var all sync.WaitGroup
	for i := 0; i < count; i++ {
		all.Add(1)
		go func(stream int) {
			defer all.Done()
			driveOne(os.Args[2], stream, bytes, number(os.Args[5]))
		}(i)
	}
	all.Wait()
	fmt.Printf("verified %d connections of %d bytes each way\n", count, bytes)
}

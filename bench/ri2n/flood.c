/*
 * HELLOs of RI2N from forged addresses, at a steady rate.
 *
 *   flood TO PORT RATE SECONDS     sends RATE datagrams a second from addresses in 10.95.0.0/16, and prints "sent N secs S"
 *
 * Needs a raw socket. Every datagram has its own source address and port, token and nonce.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { BATCH = 64, HELLO = 96 };

static struct packet {
	struct iphdr ip;
	struct udphdr udp;
	uint8_t hello[HELLO];
} __attribute__((packed)) packets[BATCH];

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static uint64_t next(void)
{
	static uint64_t state = 1;
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: flood TO PORT RATE SECONDS\n");
		return 2;
	}
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = inet_addr(argv[1]) };
	double rate = atof(argv[3]), seconds = atof(argv[4]), began = now();
	int raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	if (raw < 0) {
		perror("flood: raw socket");
		return 1;
	}
	struct mmsghdr messages[BATCH] = { 0 };
	struct iovec parts[BATCH];
	for (int at = 0; at < BATCH; at++) {
		struct packet *packet = &packets[at];
		packet->ip = (struct iphdr){ .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP, .tot_len = htons(sizeof *packet),
					     .daddr = to.sin_addr.s_addr };
		packet->udp = (struct udphdr){ .dest = htons(atoi(argv[2])), .len = htons(sizeof packet->udp + HELLO) };
		memcpy(packet->hello, "RI2N\2\1", 6);
		parts[at] = (struct iovec){ packet, sizeof *packet };
		messages[at].msg_hdr = (struct msghdr){ &to, sizeof to, &parts[at], 1, NULL, 0, 0 };
	}
	long sent = 0;
	double passed;
	while ((passed = now() - began) < seconds) {
		if (sent >= passed * rate) {
			nanosleep(&(struct timespec){ 0, 200000 }, NULL);
			continue;
		}
		for (int at = 0; at < BATCH; at++) {
			uint64_t chance[3] = { next(), next(), next() };
			packets[at].ip.saddr = htonl(10u << 24 | 95u << 16 | (chance[0] & 0xffff));
			packets[at].udp.source = htons(1024 + (chance[0] >> 16) % 60000);
			memcpy(packets[at].hello + 6, chance, sizeof chance);
		}
		int count = sendmmsg(raw, messages, BATCH, 0);
		if (count < 0) {
			perror("flood: sendmmsg");
			return 1;
		}
		sent += count;
	}
	printf("sent %ld secs %.3f\n", sent, passed);
	return 0;
}

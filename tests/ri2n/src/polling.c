/*
 * Conversations of programs that wait for a descriptor in every way there is, and read and write in every way there is.
 *
 *   polling serve IP PORT
 *   polling drive IP PORT MS [WAY]   converses in all ways at once, or in one, for so long; every byte is verified
 *   polling corners IP PORT      what other threads, children and duplicates see of a conversation
 *   polling crowd IP PORT N MS   N connections of one event loop
 *
 * A connection begins with two bytes for the server: the way to wait, and whether its descriptor waits.
 */
#include "pattern.h"
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

enum way { POLL, PPOLL, SELECT, PSELECT, LEVEL, EDGE, ONESHOT, PWAIT, WAYS };
static const char *const names[] = { "poll", "ppoll", "select", "pselect", "epoll", "edge", "oneshot", "pwait" };
enum { PATIENCE_MS = 10000, MESSAGE_MAX = 700, LONG_MESSAGE = 5000, ROUNDS_MAX = 1 << 20 };

struct end {
	int fd, epoll, waits;
	enum way way;
	uint32_t stream, seed;
	uint64_t sent, received;
	/* Reads that found nothing after the descriptor had been said to be readable. */
	long told, spurious;
};

static uint32_t chance(struct end *e, uint32_t most)
{
	e->seed = e->seed * 1664525 + 1013904223;
	return (uint32_t)(((uint64_t)e->seed * most) >> 32);
}

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void set_waits(int fd, int waits)
{
	int flags = fcntl(fd, F_GETFL);
	must(!fcntl(fd, F_SETFL, waits ? flags & ~O_NONBLOCK : flags | O_NONBLOCK));
}

static uint32_t events_of(enum way way)
{
	return EPOLLIN | (way == EDGE ? EPOLLET : way == ONESHOT ? EPOLLONESHOT : 0);
}

static void begin(struct end *e, int fd, enum way way, int waits, uint32_t stream)
{
	must(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, (int[]){ 1 }, sizeof(int)));
	*e = (struct end){ .fd = fd, .epoll = -1, .waits = waits, .way = way, .stream = stream, .seed = stream + 1 };
	set_waits(fd, waits);
	if (way >= LEVEL) {
		struct epoll_event event = { .events = events_of(way), .data.ptr = e };
		must((e->epoll = epoll_create1(EPOLL_CLOEXEC)) >= 0);
		must(!epoll_ctl(e->epoll, EPOLL_CTL_ADD, fd, &event));
	}
}

/* How many descriptors are said to be readable. */
static int wait_for(struct end *e, int ms)
{
	struct pollfd polled = { .fd = e->fd, .events = POLLIN };
	struct timespec limit = { ms / 1000, ms % 1000 * 1000000 };
	struct timeval limit_us = { ms / 1000, ms % 1000 * 1000 };
	struct epoll_event events[2];
	sigset_t none;
	fd_set set;
	int ready;
	sigemptyset(&none);
	FD_ZERO(&set);
	if (e->fd < FD_SETSIZE)
		FD_SET(e->fd, &set);
	switch (e->way) {
	case POLL:
		ready = poll(&polled, 1, ms);
		must(ready <= 0 || polled.revents & POLLIN);
		return ready;
	case PPOLL:
		ready = ppoll(&polled, 1, &limit, &none);
		must(ready <= 0 || polled.revents & POLLIN);
		return ready;
	case SELECT:
		ready = select(e->fd + 1, &set, NULL, NULL, &limit_us);
		must((ready > 0) == (FD_ISSET(e->fd, &set) != 0) || ready < 0);
		return ready;
	case PSELECT:
		ready = pselect(e->fd + 1, &set, NULL, NULL, &limit, &none);
		must((ready > 0) == (FD_ISSET(e->fd, &set) != 0) || ready < 0);
		return ready;
	case PWAIT:
		ready = epoll_pwait(e->epoll, events, 2, ms, &none);
		break;
	default:
		ready = epoll_wait(e->epoll, events, 2, ms);
	}
	must(ready <= 1);
	if (ready == 1)
		must(events[0].data.ptr == e && events[0].events & EPOLLIN && !(events[0].events & ~(EPOLLIN | EPOLLHUP | EPOLLRDHUP)));
	return ready;
}

static void arm(struct end *e)
{
	struct epoll_event event = { .events = events_of(e->way), .data.ptr = e };
	if (e->way == ONESHOT)
		must(!epoll_ctl(e->epoll, EPOLL_CTL_MOD, e->fd, &event));
}

/* Writes all bytes, in one way of several. */
static void write_all(struct end *e, const unsigned char *bytes, size_t count)
{
	while (count > 0) {
		size_t half = count / 2;
		struct iovec parts[] = { { (void *)bytes, half }, { NULL, 0 }, { (void *)(bytes + half), count - half } };
		struct msghdr message = { .msg_iov = parts, .msg_iovlen = 3 };
		uint32_t how = chance(e, 4);
		ssize_t n = how == 0   ? send(e->fd, bytes, count, MSG_NOSIGNAL)
			    : how == 1 ? write(e->fd, bytes, count)
			    : how == 2 ? writev(e->fd, parts, 3)
				       : sendmsg(e->fd, &message, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN) {
			struct pollfd polled = { .fd = e->fd, .events = POLLOUT };
			must(poll(&polled, 1, PATIENCE_MS) == 1);
			continue;
		}
		must(n > 0);
		bytes += n;
		count -= (size_t)n;
	}
}

/* Reads, in one way of several. Less than zero if nothing is there. */
static ssize_t read_some(struct end *e, unsigned char *into, size_t room)
{
	size_t part = room / 3;
	struct iovec parts[] = { { into, part }, { NULL, 0 }, { into + part, room - part } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 3 };
	unsigned char first;
	int count;
	ssize_t n, looked;
	switch (chance(e, 6)) {
	case 0:
		n = recv(e->fd, into, room, 0);
		break;
	case 1:
		n = read(e->fd, into, room);
		break;
	case 2:
		n = readv(e->fd, parts, 3);
		break;
	case 3:
		n = recvmsg(e->fd, &message, MSG_DONTWAIT);
		break;
	case 4:
		looked = recv(e->fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
		n = recv(e->fd, into, room, MSG_DONTWAIT);
		must(looked <= 0 || (n > 0 && first == into[0]));
		break;
	default:
		must(!ioctl(e->fd, FIONREAD, &count));
		n = recv(e->fd, into, room, MSG_DONTWAIT);
		must(count == 0 || n > 0);
	}
	must(n >= 0 || errno == EAGAIN);
	return n;
}

/* Waits until bytes are there and reads some. Zero at the end of the stream. */
static ssize_t get_some(struct end *e, unsigned char *into, size_t room)
{
	for (;;) {
		ssize_t n = -1;
		/* Edge-triggered, one reads until nothing is left before one waits. */
		if (e->way == EDGE && (n = read_some(e, into, room)) >= 0)
			return n;
		must(wait_for(e, PATIENCE_MS) == 1);
		e->told++;
		n = read_some(e, into, room);
		arm(e);
		if (n >= 0)
			return n;
		e->spurious++;
	}
}

/* Sends a message, and gets it back. */
static double take_turn(struct end *e)
{
	unsigned char out[LONG_MESSAGE], in[LONG_MESSAGE];
	size_t count = chance(e, 50) ? 1 + chance(e, MESSAGE_MAX) : LONG_MESSAGE, came = 0;
	size_t most = chance(e, 4) ? sizeof in : 1 + chance(e, 200), first = chance(e, 10) ? count : chance(e, (uint32_t)count);
	double from = now_us();
	fill(out, count, e->stream, e->sent);
	if (first > 0)
		write_all(e, out, first);
	if (first < count)
		write_all(e, out + first, count - first);
	e->sent += count;
	while (came < count) {
		size_t room = count - came < most ? count - came : most;
		ssize_t n = get_some(e, in + came, room);
		must(n > 0);
		came += (size_t)n;
	}
	verify(in, count, e->stream, e->received);
	e->received += count;
	return now_us() - from;
}

/* Nothing is under way: nothing is readable, though the stream brings the message after its copy. */
static void must_be_quiet(struct end *e)
{
	unsigned char byte;
	if (chance(e, 2))
		usleep(chance(e, 4000));
	must(wait_for(e, 0) == 0);
	must(recv(e->fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	must(wait_for(e, 1) == 0);
}

static int reach(const char *ip, const char *port, enum way way, int waits)
{
	struct sockaddr_in remote = address_of(ip, port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unsigned char kind[] = { (unsigned char)way, (unsigned char)waits };
	must(fd >= 0 && !connect(fd, (struct sockaddr *)&remote, sizeof remote));
	must(send(fd, kind, 2, MSG_NOSIGNAL) == 2);
	return fd;
}

/* The server's side. */

struct served {
	struct end end;
	int busy, refs;
};

static void *echo(void *what)
{
	struct served *s = what;
	struct end *e = &s->end;
	unsigned char buffer[LONG_MESSAGE];
	for (;;) {
		ssize_t n;
		if (e->way != ONESHOT) {
			n = get_some(e, buffer, 1 + chance(e, sizeof buffer));
		} else {
			must(wait_for(e, -1) == 1);
			/* Two threads wait: one alone has the event, until it arms the descriptor again. */
			must(!__atomic_exchange_n(&s->busy, 1, __ATOMIC_SEQ_CST));
			n = read_some(e, buffer, sizeof buffer);
		}
		if (n > 0)
			write_all(e, buffer, (size_t)n);
		if (e->way == ONESHOT) {
			__atomic_store_n(&s->busy, 0, __ATOMIC_SEQ_CST);
			arm(e);
		}
		if (n == 0)
			break;
	}
	if (__atomic_sub_fetch(&s->refs, 1, __ATOMIC_SEQ_CST) == 0) {
		close(e->fd);
		if (e->epoll >= 0)
			close(e->epoll);
		free(s);
	}
	return NULL;
}

static void serve(const char *ip, const char *port)
{
	int listener = listen_at(ip, port);
	for (;;) {
		unsigned char kind[2];
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		must(fd >= 0);
		if (recv(fd, kind, 2, MSG_WAITALL) != 2 || kind[0] >= WAYS) {
			close(fd);
			continue;
		}
		struct served *s = calloc(1, sizeof *s);
		must(s);
		begin(&s->end, fd, kind[0], kind[1], 7);
		s->refs = kind[0] == ONESHOT ? 2 : 1;
		for (int i = s->refs; i > 0; i--) {
			pthread_t thread;
			must(!pthread_create(&thread, NULL, echo, s));
			must(!pthread_detach(thread));
		}
	}
}

/* All ways at once. */

struct driver {
	struct end end;
	pthread_t thread;
	double end_us, *us;
	int count;
};

static void *converse(void *what)
{
	struct driver *d = what;
	while (now_us() < d->end_us && d->count < ROUNDS_MAX) {
		d->us[d->count++] = take_turn(&d->end);
		if (chance(&d->end, 30) == 0)
			must_be_quiet(&d->end);
	}
	return NULL;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void drive(const char *ip, const char *port, int ms, const char *only)
{
	static struct driver drivers[2 * WAYS];
	int count = 0, turns = 0;
	long told = 0, spurious = 0;
	for (int waits = 0; waits < 2; waits++)
		for (int way = 0; way < WAYS; way++) {
			struct driver *d = &drivers[count];
			if ((way == EDGE && waits) || (only && strcmp(only, names[way])))
				continue;
			begin(&d->end, reach(ip, port, way, waits), way, waits, (uint32_t)count++);
			d->end_us = now_us() + ms * 1e3;
			must((d->us = malloc(ROUNDS_MAX * sizeof *d->us)));
			must(!pthread_create(&d->thread, NULL, converse, d));
		}
	for (int k = 0; k < count; k++) {
		struct driver *d = &drivers[k];
		must(!pthread_join(d->thread, NULL));
		must(d->count > 0);
		qsort(d->us, (size_t)d->count, sizeof *d->us, ascending);
		fprintf(stderr, "%-7s %s  %6d turns, median %6.0f us, 99 %% %6.0f us, at most %4.0f ms, told in vain %ld of %ld\n",
			names[d->end.way], d->end.waits ? "waits" : "-    ", d->count, d->us[d->count / 2], d->us[d->count * 99 / 100],
			d->us[d->count - 1] / 1e3, d->end.spurious, d->end.told);
		turns += d->count;
		told += d->end.told;
		spurious += d->end.spurious;
		close(d->end.fd);
	}
	/* The broker may be in the middle of passing on what a copy has brought: that is a moment's. */
	must(spurious * 100 <= told);
	printf("%d conversations, %d turns verified\n", count, turns);
}

/* Many in one loop, level-triggered. */
static void crowd(const char *ip, const char *port, int count, int ms)
{
	struct end *ends = calloc((size_t)count, sizeof *ends);
	size_t *came = calloc((size_t)count, sizeof *came);
	int epoll = epoll_create1(EPOLL_CLOEXEC), turns = 0, open = count;
	double end_us = now_us() + ms * 1e3;
	must(ends && came && epoll >= 0);
	for (int k = 0; k < count; k++) {
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = &ends[k] };
		begin(&ends[k], reach(ip, port, LEVEL, 0), POLL, 0, (uint32_t)k);
		must(!epoll_ctl(epoll, EPOLL_CTL_ADD, ends[k].fd, &event));
	}
	unsigned char buffer[MESSAGE_MAX];
	for (int k = 0; k < count; k++) {
		fill(buffer, 64, ends[k].stream, 0);
		write_all(&ends[k], buffer, 64);
		ends[k].sent = 64;
	}
	while (open > 0) {
		struct epoll_event events[16];
		int ready = epoll_wait(epoll, events, 16, PATIENCE_MS);
		must(ready > 0);
		for (int i = 0; i < ready; i++) {
			struct end *e = events[i].data.ptr;
			for (int j = 0; j < i; j++)
				must(events[j].data.ptr != e);
			ssize_t n = read_some(e, buffer, chance(e, 3) ? sizeof buffer : 10);
			if (n < 0)
				continue;
			must(n > 0);
			verify(buffer, (size_t)n, e->stream, e->received);
			e->received += (uint64_t)n;
			if (e->received < e->sent)
				continue;
			turns++;
			if (now_us() >= end_us) {
				open--;
				must(!close(e->fd));
				continue;
			}
			size_t length = 1 + chance(e, MESSAGE_MAX);
			fill(buffer, length, e->stream, e->sent);
			write_all(e, buffer, length);
			e->sent += length;
		}
	}
	printf("%d connections in one loop, %d turns verified\n", count, turns);
}

/* Corners. */

static void turns(struct end *e, int count)
{
	for (int k = 0; k < count; k++)
		take_turn(e);
	must_be_quiet(e);
}

struct other {
	int fd;
	unsigned char bytes[64];
};

static void *read_elsewhere(void *what)
{
	struct other *o = what;
	for (size_t done = 0; done < sizeof o->bytes;) {
		ssize_t n = recv(o->fd, o->bytes + done, sizeof o->bytes - done, 0);
		if (n < 0 && errno == EAGAIN) {
			struct pollfd polled = { .fd = o->fd, .events = POLLIN };
			must(poll(&polled, 1, PATIENCE_MS) == 1);
			continue;
		}
		must(n > 0);
		done += (size_t)n;
	}
	return NULL;
}

static void ignore(int signal)
{
	(void)signal;
}

static void corners(const char *ip, const char *port)
{
	volatile int count = 0;
	for (volatile int way = 0; way < WAYS; way++)
		for (volatile int waits = 0; waits < (way == EDGE ? 1 : 2); waits++) {
			struct end e, again;
			struct epoll_event event = { .events = events_of(way), .data.ptr = &e };
			begin(&e, reach(ip, port, way, waits), way, waits, (uint32_t)count++);
			turns(&e, 60);

			/* Another thread reads what this one has sent. */
			for (int k = 0; k < 50; k++) {
				struct other other = { .fd = e.fd };
				unsigned char out[sizeof other.bytes];
				pthread_t thread;
				must(!pthread_create(&thread, NULL, read_elsewhere, &other));
				fill(out, sizeof out, e.stream, e.sent);
				write_all(&e, out, sizeof out);
				must(!pthread_join(thread, NULL));
				verify(other.bytes, sizeof out, e.stream, e.sent);
				e.sent += sizeof out;
				e.received += sizeof out;
			}
			/* Its bytes ended no wait of ours for good. */
			if (way == ONESHOT || way == EDGE)
				must(!epoll_ctl(e.epoll, EPOLL_CTL_MOD, e.fd, &event));
			turns(&e, 20);

			/* A child goes on where we are, and we where it was. */
			int told[2];
			must(!pipe(told));
			pid_t child = fork();
			must(child >= 0);
			if (child == 0) {
				if (e.epoll >= 0) {
					must((e.epoll = epoll_create1(0)) >= 0);
					must(!epoll_ctl(e.epoll, EPOLL_CTL_ADD, e.fd, &event));
				}
				turns(&e, 30);
				must(!close(e.fd));
				must(write(told[1], &e, sizeof e) == sizeof e);
				_exit(0);
			}
			int status;
			must(read(told[0], &again, sizeof again) == sizeof again && waitpid(child, &status, 0) == child && status == 0);
			close(told[0]);
			close(told[1]);
			e.sent = again.sent;
			e.received = again.received;
			if (way == ONESHOT || way == EDGE)
				must(!epoll_ctl(e.epoll, EPOLL_CTL_MOD, e.fd, &event));
			turns(&e, 30);

			/* What a child after vfork closes is closed for itself alone, though it has our memory. */
			child = vfork();
			must(child >= 0);
			if (child == 0) {
				close(e.fd);
				if (e.epoll >= 0)
					close(e.epoll);
				_exit(0);
			}
			must(waitpid(child, &status, 0) == child && status == 0);
			turns(&e, 20);

			/* An instance has several numbers: one to register by, one to wait at. */
			if (e.epoll >= 0) {
				int other = dup(e.epoll);
				must(other >= 0 && !epoll_ctl(e.epoll, EPOLL_CTL_DEL, e.fd, NULL));
				must(!epoll_ctl(other, EPOLL_CTL_ADD, e.fd, &event));
				if (way != ONESHOT)
					turns(&e, 30);
				must(!epoll_ctl(other, EPOLL_CTL_DEL, e.fd, NULL) && !close(other));
				must(!epoll_ctl(e.epoll, EPOLL_CTL_ADD, e.fd, &event));
				turns(&e, 20);
			}

			/* A duplicate is the same stream, at a number of which nothing is known. */
			int copy = dup(e.fd), original = e.fd;
			must(copy >= 0);
			e.fd = copy;
			if (e.epoll >= 0)
				must(!epoll_ctl(e.epoll, EPOLL_CTL_ADD, copy, &event) && !epoll_ctl(e.epoll, EPOLL_CTL_DEL, original, NULL));
			turns(&e, 20);
			e.fd = original;
			if (e.epoll >= 0)
				must(!epoll_ctl(e.epoll, EPOLL_CTL_ADD, original, &event) && !epoll_ctl(e.epoll, EPOLL_CTL_DEL, copy, NULL));
			must(!close(copy));
			turns(&e, 20);

			/* A registration ends and begins, and watches for less meanwhile. */
			if (e.epoll >= 0) {
				struct epoll_event less = { .events = EPOLLRDHUP, .data.ptr = &e }, out = { .events = EPOLLOUT | EPOLLIN, .data.ptr = &e };
				struct epoll_event seen;
				unsigned char byte;
				for (int k = 0; k < 2; k++) {
					must(!epoll_ctl(e.epoll, EPOLL_CTL_MOD, e.fd, &less));
					byte = pattern(e.stream, e.sent++);
					write_all(&e, &byte, 1);
					must(epoll_wait(e.epoll, &seen, 1, 30) == 0);
					while (recv(e.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 1)
						usleep(1000);
					if (k == 0)
						must(!epoll_ctl(e.epoll, EPOLL_CTL_DEL, e.fd, NULL) && epoll_wait(e.epoll, &seen, 1, 30) == 0 &&
						     !epoll_ctl(e.epoll, EPOLL_CTL_ADD, e.fd, &out));
					else
						must(!epoll_ctl(e.epoll, EPOLL_CTL_MOD, e.fd, &out));
					must(epoll_wait(e.epoll, &seen, 1, 1000) == 1 && seen.data.ptr == &e && seen.events == (EPOLLIN | EPOLLOUT));
					must(recv(e.fd, &byte, 1, MSG_DONTWAIT) == 1 && byte == pattern(e.stream, e.received++));
				}
				must(!epoll_ctl(e.epoll, EPOLL_CTL_MOD, e.fd, &event));
				turns(&e, 20);
			}

			/* A signal ends a wait, and time does. */
			struct sigaction action = { .sa_handler = ignore };
			struct itimerspec soon = { .it_value.tv_nsec = 20000000 };
			timer_t timer;
			double from = now_us();
			must(!sigaction(SIGALRM, &action, NULL) && !timer_create(CLOCK_MONOTONIC, NULL, &timer) &&
			     !timer_settime(timer, 0, &soon, NULL));
			must(wait_for(&e, 5000) == -1 && errno == EINTR && now_us() - from > 19e3 && now_us() - from < 2e6);
			must(!timer_delete(timer));
			signal(SIGALRM, SIG_DFL);
			from = now_us();
			must(wait_for(&e, 50) == 0 && now_us() - from > 49e3 && now_us() - from < 2e6);
			turns(&e, 20);

			/* The end is seen, and closing leaves nothing behind. */
			must(!shutdown(e.fd, SHUT_WR));
			unsigned char byte;
			must(get_some(&e, &byte, 1) == 0);
			must(!close(e.fd));
			if (e.epoll >= 0) {
				struct epoll_event seen;
				must(epoll_wait(e.epoll, &seen, 1, 5) == 0);
				must(!close(e.epoll));
			}
		}
	printf("%d corners of waiting\n", count);
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc == 4 && !strcmp(argv[1], "serve"))
		serve(argv[2], argv[3]);
	else if ((argc == 5 || argc == 6) && !strcmp(argv[1], "drive"))
		drive(argv[2], argv[3], atoi(argv[4]), argv[5]);
	else if (argc == 4 && !strcmp(argv[1], "corners"))
		corners(argv[2], argv[3]);
	else if (argc == 6 && !strcmp(argv[1], "crowd"))
		crowd(argv[2], argv[3], atoi(argv[4]), atoi(argv[5]));
	else
		return 2;
	return 0;
}

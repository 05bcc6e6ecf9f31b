/*
 * A conversation in which a thread leaves the middle of `send` for good: a signal's handler leaves it by siglongjmp.
 *
 *   jump IP PORT    against an echo server that takes a first byte for itself
 *
 * The moment is that of the preload library's question how much a socket pair holds, made a signal by a filter of system
 * calls. A connection of TCP is asked no such thing: there the message is sent.
 */
#include "pattern.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { BYTES = 64, TURNS = 100, CONNECTIONS = 5 };

static sigjmp_buf out;
static int told[2];

static void leave(int signal)
{
	siglongjmp(out, signal);
}

static void *leave_in_send(void *fd)
{
	unsigned char message[BYTES];
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCOUTQ, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
	fill(message, BYTES, TURNS, 0);
	must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	must(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
	if (sigsetjmp(out, 1)) {
		must(write(told[1], "l", 1) == 1);
	} else {
		must(send(*(int *)fd, message, BYTES, MSG_NOSIGNAL) == BYTES);
		must(write(told[1], "s", 1) == 1);
	}
	/* It lives on: what it holds is not given up by its death. */
	for (;;)
		pause();
}

static void get(int fd, uint32_t stream)
{
	unsigned char message[BYTES];
	for (size_t done = 0; done < BYTES;) {
		ssize_t n = recv(fd, message + done, BYTES - done, 0);
		must(n > 0);
		done += (size_t)n;
	}
	verify(message, BYTES, stream, 0);
}

static void converse(int fd)
{
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		unsigned char message[BYTES];
		fill(message, BYTES, turn, 0);
		must(send(fd, message, BYTES, MSG_NOSIGNAL) == BYTES);
		get(fd, turn);
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = leave, .sa_flags = SA_RESTART };
	must(argc == 3 && !sigaction(SIGSYS, &action, NULL));
	struct sockaddr_in remote = address_of(argv[1], argv[2]);
	int left = 0;
	must(!pipe(told));
	for (int k = 0; k < CONNECTIONS; k++) {
		pthread_t thread;
		char how;
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		must(!connect(fd, (struct sockaddr *)&remote, sizeof remote));
		must(send(fd, "e", 1, 0) == 1);
		converse(fd);
		must(!pthread_create(&thread, NULL, leave_in_send, &fd));
		must(read(told[0], &how, 1) == 1);
		if (how == 'l')
			left++;
		else
			get(fd, TURNS);
		converse(fd);
		close(fd);
	}
	printf("%d of %d messages left in the middle\n", left, CONNECTIONS);
	return 0;
}

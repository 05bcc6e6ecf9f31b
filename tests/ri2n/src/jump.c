/*
 * A conversation in which a thread leaves the middle of `send` for good: a signal's handler leaves it by siglongjmp.
 *
 *   jump IP PORT    against an echo server that takes a first byte for itself
 *
 * The moment is that of the preload library's question how much a socket pair holds. System calls from outside this
 * program's own text are made signals (syscall user dispatch: a seccomp filter would have the library leave the program
 * alone), and all but that one are made here in their place. A connection of TCP is asked no such thing: there the message
 * is sent.
 */
#define _GNU_SOURCE
#include "pattern.h"
#include <linux/prctl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

/* A conversation goes by early copies unless its two ends are kept from the processors for too long. */
enum { BYTES = 64, TURNS = 100, WANTED = 5, CONNECTIONS_MAX = 20 };

static sigjmp_buf out;
static int told[2];

/* What the kernel looks at before each system call. */
static volatile char dispatch;

/* A system call by an instruction of this program's text. */
static long call(const greg_t *registers)
{
	long result = registers[REG_RAX];
	register long r10 __asm__("r10") = registers[REG_R10];
	register long r8 __asm__("r8") = registers[REG_R8];
	register long r9 __asm__("r9") = registers[REG_R9];
	__asm__ volatile("syscall"
			 : "+a"(result)
			 : "D"(registers[REG_RDI]), "S"(registers[REG_RSI]), "d"(registers[REG_RDX]), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static void handle_call(int signal, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	(void)info;
	if (registers[REG_RAX] == SYS_ioctl && registers[REG_RSI] == TIOCOUTQ) {
		dispatch = SYSCALL_DISPATCH_FILTER_ALLOW;
		siglongjmp(out, signal);
	}
	registers[REG_RAX] = call(registers);
}

/* The way back from a signal's handler, which is a system call as well. */
void way_back(void);
__asm__(".text\nway_back:\n\tmovl $15, %eax\n\tsyscall\n");

/* Has the handler called, and returned from by this program's text: the C library would have its own. */
static void handle_calls(void)
{
	struct {
		void (*handler)(int, siginfo_t *, void *);
		unsigned long flags;
		void (*restorer)(void);
		uint64_t mask;
	} action = { handle_call, SA_SIGINFO | 0x04000000 /* SA_RESTORER */, way_back, 0 };
	must(!syscall(SYS_rt_sigaction, SIGSYS, &action, NULL, sizeof action.mask));
}

static void *leave_in_send(void *fd)
{
	extern char __executable_start, etext;
	unsigned char message[BYTES];
	fill(message, BYTES, TURNS, 0);
	dispatch = SYSCALL_DISPATCH_FILTER_ALLOW;
	must(!prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, &__executable_start, &etext - &__executable_start, &dispatch));
	if (sigsetjmp(out, 1)) {
		must(write(told[1], "l", 1) == 1);
	} else {
		dispatch = SYSCALL_DISPATCH_FILTER_BLOCK;
		ssize_t sent = send(*(int *)fd, message, BYTES, MSG_NOSIGNAL);
		dispatch = SYSCALL_DISPATCH_FILTER_ALLOW;
		must(sent == BYTES);
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
	must(argc == 3);
	handle_calls();
	struct sockaddr_in remote = address_of(argv[1], argv[2]);
	int left = 0, tried = 0;
	must(!pipe(told));
	for (; left < WANTED && tried < CONNECTIONS_MAX; tried++) {
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
	printf("%d of %d messages left in the middle\n", left, tried);
	return 0;
}

/*
 * RI2N: one reliable stream over several Ethernet links.
 *
 * The calls are those of stream sockets, with a handle in place of a descriptor. Every function that returns `int` or
 * `ssize_t` returns a negative RI2N_E… code on failure; nothing is ever left in errno. A handle may be used by several
 * threads, except that ri2n_close() and ri2n_abort() end it for all of them and must be its last use. Handles do not
 * survive fork(): a child may only make new ones, and only after it has executed a program.
 *
 * Link with `pkg-config --cflags --libs ri2n`. Names that begin with ri2n_ or RI2N_ are reserved.
 */
#ifndef RI2N_H
#define RI2N_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this header: major * 65536 + minor * 256 + patch. */
#define RI2N_VERSION 0x000100

/* Error codes. They never change their meaning. */
#define RI2N_EINVAL (-1)       /* an argument is no valid value */
#define RI2N_EWOULDBLOCK (-2)  /* it would have to wait, and must not, or has waited as long as it may */
#define RI2N_EREFUSED (-3)     /* nobody listens for RI2N there */
#define RI2N_ETIMEDOUT (-4)    /* nobody answers, or all links were silent beyond the outage deadline */
#define RI2N_ERESET (-5)       /* the peer ended the connection at once */
#define RI2N_EABORTED (-6)     /* this end ended the connection at once */
#define RI2N_EPIPE (-7)        /* sent after the end was announced */
#define RI2N_EADDRINUSE (-8)   /* somebody else has this UDP port */
#define RI2N_EADDRNOTAVAIL (-9) /* this machine does not have this address */
#define RI2N_EACCES (-10)      /* not allowed, or the keys of both ends differ */
#define RI2N_ENOTCONN (-11)    /* the handle is no connection */
#define RI2N_EISCONN (-12)     /* the handle is a connection or a listener already */
#define RI2N_ENOMEM (-13)      /* out of memory, descriptors or threads */
#define RI2N_EUNREACH (-14)    /* no route to the address */
#define RI2N_ECONFIG (-15)     /* the configuration file cannot be read or understood */
#define RI2N_EIO (-16)         /* any other failure of the system */
#define RI2N_EBUG (-17)        /* a mistake inside the library; the handle should be closed */

/* Flags of ri2n_send() and ri2n_recv(). */
#define RI2N_DONTWAIT 1 /* fail with RI2N_EWOULDBLOCK instead of waiting */

/* Options. Times are milliseconds, sizes bytes. */
#define RI2N_CONNECT_TIMEOUT 1 /* how long to try to connect; before connecting */
#define RI2N_OUTAGE_DEADLINE 2 /* how long all links may be silent before a connection ends */
#define RI2N_KEEPALIVE 3       /* end the connection when the peer is silent this long, 0: never; before connecting */
#define RI2N_RECEIVE_TIMEOUT 4 /* how long ri2n_recv() waits, 0: for ever */
#define RI2N_SEND_TIMEOUT 5    /* how long ri2n_send() waits, 0: for ever */
#define RI2N_SEND_BUFFER 6     /* bytes sent and not acknowledged, at most; before connecting or listening */
#define RI2N_RECEIVE_BUFFER 7  /* bytes arrived and not read, at most; before connecting or listening */
#define RI2N_LINKS 8           /* links of the connection; only to get */
#define RI2N_LINKS_GOOD 9      /* links of the connection that deliver; only to get */

/* A socket: nothing yet, a listener, or a connection. */
typedef struct ri2n_handle ri2n_handle;

/* Version of the library, as RI2N_VERSION. */
unsigned int ri2n_version(void);

/* What an error code means, in English; never NULL. */
const char *ri2n_strerror(int error);

/* Makes a socket. */
int ri2n_socket(ri2n_handle **socket);

/* Reads settings from a TOML file, before connecting or listening. */
int ri2n_configure(ri2n_handle *socket, const char *file);

/* Authenticates every packet with a key of 32 bytes, before connecting or listening; both ends need the same. */
int ri2n_set_key(ri2n_handle *socket, const unsigned char *key, size_t length);

/* Sets and gets options. */
int ri2n_set(ri2n_handle *socket, int option, int64_t value);
int ri2n_get(ri2n_handle *socket, int option, int64_t *value);

/* Chooses where a listener listens; 0.0.0.0 or :: serves all links. */
int ri2n_bind(ri2n_handle *socket, const struct sockaddr *address, socklen_t length);

/* Listens. Connections wait in a queue of the library's own size. */
int ri2n_listen(ri2n_handle *socket);

/* Waits for a connection; `address` and `length` may be NULL. With RI2N_DONTWAIT, fails instead of waiting. */
int ri2n_accept(ri2n_handle *socket, ri2n_handle **connection, struct sockaddr *address, socklen_t *length, int flags);

/* Connects to a listener at any one of its machine's addresses; the others are learnt. */
int ri2n_connect(ri2n_handle *socket, const struct sockaddr *address, socklen_t length);

/* Sends at least one byte and returns how many; receives at least one byte, or 0 at the end of the stream. */
ssize_t ri2n_send(ri2n_handle *socket, const void *bytes, size_t count, int flags);
ssize_t ri2n_recv(ri2n_handle *socket, void *bytes, size_t count, int flags);

/* Ends one direction or both: SHUT_RD, SHUT_WR, SHUT_RDWR. What was sent before is delivered. */
int ri2n_shutdown(ri2n_handle *socket, int how);

/* Waits until everything sent, and the end if it was announced, has been acknowledged; at most so long, -1: for ever. */
int ri2n_flush(ri2n_handle *socket, int64_t timeout_ms);

/* Near and far address. */
int ri2n_getsockname(ri2n_handle *socket, struct sockaddr *address, socklen_t *length);
int ri2n_getpeername(ri2n_handle *socket, struct sockaddr *address, socklen_t *length);

/*
 * Descriptors for poll() and the like: both become *readable* (POLLIN), the one while ri2n_recv() or ri2n_accept() would
 * not have to wait, the other while ri2n_send() would not. They belong to the handle: do not read or close them.
 */
int ri2n_receive_descriptor(ri2n_handle *socket);
int ri2n_send_descriptor(ri2n_handle *socket);

/* Frees the handle. What was sent is still delivered as long as the process lives; ri2n_flush() waits for it. */
int ri2n_close(ri2n_handle *socket);

/* Frees the handle and ends the connection at once: the peer gets RI2N_ERESET. */
int ri2n_abort(ri2n_handle *socket);

/* Lets `ri2n status` list this process's connections, under this name. */
int ri2n_serve_status(const char *program);

#ifdef __cplusplus
}
#endif
#endif

//! Streams and listeners on a runtime, over loopback.

use ri2n_tokio::{Config, Listener, Stream};
use std::{io, net::SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn localhost() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Bytes that tell where they belong.
fn numbered(stream: u64, length: usize) -> Vec<u8> {
    (0..).flat_map(|word: u64| (word << 8 | stream).to_le_bytes()).take(length).collect()
}

/// Echoes every connection until its end.
async fn serve(listener: Listener) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let (mut from, mut to) = tokio::io::split(stream);
            tokio::io::copy(&mut from, &mut to).await.unwrap();
            to.shutdown().await.unwrap();
        });
    }
}

#[tokio::test(flavor = "current_thread")]
async fn one_thread_carries_both_ends_of_many_streams() {
    let listener = Listener::bind(localhost(), &Config::default()).unwrap();
    let server = listener.local_addr().unwrap();
    let serving = tokio::spawn(serve(listener));
    let clients: Vec<_> = (0..8_u64)
        .map(|number| {
            tokio::spawn(async move {
                let stream = Stream::connect(server, &Config::default()).await.unwrap();
                let sent = numbered(number, 3_000_000);
                let (mut from, mut to) = tokio::io::split(stream);
                // More than all buffers hold: neither direction may wait for the other.
                let writing = {
                    let sent = sent.clone();
                    tokio::spawn(async move {
                        to.write_all(&sent).await.unwrap();
                        to.shutdown().await.unwrap();
                    })
                };
                let mut received = Vec::new();
                from.read_to_end(&mut received).await.unwrap();
                writing.await.unwrap();
                assert!(received == sent, "stream {number} came back altered");
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    serving.abort();
}

#[tokio::test]
async fn ends_and_errors_are_those_of_tcp() {
    let listener = Listener::bind(localhost(), &Config::default()).unwrap();
    let server = listener.local_addr().unwrap();
    let (accepted, connected) =
        tokio::join!(listener.accept(), async { Stream::connect(server, &Config::default()).await });
    let ((mut theirs, client), mut ours) = (accepted.unwrap(), connected.unwrap());
    assert_eq!((ours.peer_addr(), client.ip()), (server, ours.local_addr().ip()));

    ours.write_all(b"last words").await.unwrap();
    ours.shutdown().await.unwrap();
    ours.flush_wait(None).await.unwrap();
    let mut heard = String::new();
    theirs.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "last words");
    assert_eq!(ours.write(b"more").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);

    theirs.reset();
    let error = ours.read(&mut [0; 9]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);

    drop(listener);
    let nobody = Stream::connect(server, &Config::default()).await.unwrap_err();
    assert_eq!(nobody.kind(), io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn a_read_that_was_given_up_loses_nothing() {
    let listener = Listener::bind(localhost(), &Config::default()).unwrap();
    let server = listener.local_addr().unwrap();
    let (accepted, connected) =
        tokio::join!(listener.accept(), async { Stream::connect(server, &Config::default()).await });
    let ((mut theirs, _), mut ours) = (accepted.unwrap(), connected.unwrap());
    let mut byte = [0];
    for number in 0..100 {
        tokio::select! {
            biased;
            result = theirs.read(&mut byte) => panic!("nothing was sent yet: {result:?}"),
            () = tokio::task::yield_now() => {}
        }
        ours.write_all(&[number]).await.unwrap();
        theirs.read_exact(&mut byte).await.unwrap();
        assert_eq!(byte, [number]);
    }
}

//! Talks to the kernel by netlink: changes, many to a system call, and dumps.
//!
//! ```text
//! Request ─ header (16) │ family's header │ attributes ─▶ kernel ─▶ an acknowledgement each: 0, or the reason not
//! dump    ─ header (16) │ family's header              ─▶ kernel ─▶ messages …, DONE
//! ```
//! Messages are framed and taken apart by `netlink-packet-core`. What they hold is read attribute by attribute, each of
//! which may be missing: a kernel that says more than is known here is understood all the same.
//!
//! Source: netlink(7), `linux/netlink.h`.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
};

use netlink_packet_core::{
    DefaultNla, Emitable as _, NLA_F_NESTED, NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_DONE,
    NLMSG_ERROR, NetlinkBuffer, NetlinkHeader, NlasIterator,
};
use nix::{
    errno::Errno,
    sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket},
};

/// Most requests that go to the kernel at once; their acknowledgements fit into a socket's default buffer.
const BATCH: usize = 64;
/// Longest datagram that the kernel sends.
const REPLY_LEN_MAX: usize = 1 << 16;
/// How often a table that changes while it is listed is listed again.
const DUMPS_MAX: usize = 10;
const HEADER_LEN: usize = 16;
/// `NETLINK_CAP_ACK` and `NETLINK_EXT_ACK` of `linux/netlink.h`.
const CAP_ACK: libc::c_int = 10;
const EXT_ACK: libc::c_int = 11;
/// The acknowledgement has attributes, among them the kernel's own words.
const NLM_F_ACK_TLVS: u16 = 0x200;
const NLMSGERR_ATTR_MSG: u16 = 1;

/// A netlink socket of the namespace in which it was opened.
#[derive(Debug)]
pub struct Netlink {
    fd: OwnedFd,
    sequence: u32,
}

/// What the kernel is asked.
#[derive(Clone, Debug)]
pub struct NetlinkRequest {
    /// `RTM_*`, or a generic family's number.
    pub kind: u16,
    /// Besides those that every request has.
    pub flags: u16,
    /// The family's header, and attributes.
    pub body: Vec<u8>,
}

/// Why the kernel did not do what it was asked.
#[derive(Debug)]
pub struct Refusal {
    /// Which request of those that were handed over.
    pub at: usize,
    /// Why.
    pub errno: Errno,
    /// The kernel's own words, if it has any.
    pub words: String,
}

impl Netlink {
    /// Opens one.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn open(protocol: SockProtocol) -> io::Result<Self> {
        let fd = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        let one: libc::c_int = 1;
        for option in [CAP_ACK, EXT_ACK] {
            // Kernels without them answer at greater length and with fewer words.
            // SAFETY: the value is live and its true length is given.
            unsafe {
                libc::setsockopt(
                    fd.as_raw_fd(),
                    libc::SOL_NETLINK,
                    option,
                    (&raw const one).cast(),
                    size_of_val(&one) as u32,
                );
            }
        }
        Ok(Self { fd, sequence: 0 })
    }

    /// Has requests carried out in their order. After a refusal, up to 63 requests that follow have been carried out all
    /// the same, and no more.
    ///
    /// # Errors
    /// The first refusal; what the socket itself refuses counts as the first of those that went with it.
    pub fn change(&mut self, requests: &[NetlinkRequest]) -> Result<(), Refusal> {
        for (batch, some) in requests.chunks(BATCH).enumerate() {
            let first = batch * BATCH;
            let broken = |error: io::Error| Refusal {
                at: first,
                errno: Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)),
                words: error.to_string(),
            };
            let base = self.sequence.wrapping_add(1);
            let octets: Vec<u8> = some.iter().flat_map(|request| self.frame(request, NLM_F_ACK)).collect();
            send(self.fd.as_raw_fd(), &octets, MsgFlags::empty()).map_err(|errno| broken(errno.into()))?;
            let (mut open, mut refused) = (some.len(), None::<Refusal>);
            while open > 0 {
                self.receive(|header, payload| {
                    let at = header.sequence_number.wrapping_sub(base) as usize;
                    if header.message_type == NLMSG_ERROR && at < some.len() {
                        open -= 1;
                        let number = errno_of(payload);
                        if number != 0 && refused.as_ref().is_none_or(|refusal| refusal.at > first + at) {
                            let words = words(header.flags, payload);
                            refused = Some(Refusal { at: first + at, errno: Errno::from_raw(number), words });
                        }
                    }
                    Ok(open > 0)
                })
                .map_err(broken)?;
            }
            if let Some(refusal) = refused {
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// Asks one question and returns the one answer.
    ///
    /// # Errors
    /// With the kernel's number of the error.
    pub fn ask(&mut self, request: &NetlinkRequest) -> io::Result<Vec<u8>> {
        let octets = self.frame(request, 0);
        let sequence = self.sequence;
        send(self.fd.as_raw_fd(), &octets, MsgFlags::empty())?;
        let mut answer = None;
        while answer.is_none() {
            self.receive(|header, payload| {
                if header.sequence_number == sequence {
                    if header.message_type == NLMSG_ERROR {
                        return Err(io::Error::from_raw_os_error(errno_of(payload)));
                    }
                    answer = Some(payload.to_vec());
                }
                Ok(answer.is_none())
            })?;
        }
        Ok(answer.unwrap_or_default())
    }

    /// Everything of a kind, each with its family's header.
    ///
    /// # Errors
    /// With the kernel's number of the error; EINTR if the table does not stand still.
    pub fn dump(&mut self, request: &NetlinkRequest) -> io::Result<Vec<Vec<u8>>> {
        for _ in 0..DUMPS_MAX {
            let octets = self.frame(request, NLM_F_DUMP);
            let sequence = self.sequence;
            send(self.fd.as_raw_fd(), &octets, MsgFlags::empty())?;
            let (mut found, mut more, mut torn) = (Vec::new(), true, false);
            while more {
                self.receive(|header, payload| {
                    if header.sequence_number != sequence {
                        return Ok(true);
                    }
                    torn |= header.flags & NLM_F_DUMP_INTR != 0;
                    match header.message_type {
                        NLMSG_DONE => {
                            more = false;
                            match errno_of(payload) {
                                0 => {}
                                number => return Err(io::Error::from_raw_os_error(number)),
                            }
                        }
                        NLMSG_ERROR => return Err(io::Error::from_raw_os_error(errno_of(payload))),
                        _ => found.push(payload.to_vec()),
                    }
                    Ok(more)
                })?;
            }
            if !torn {
                return Ok(found);
            }
        }
        Err(io::Error::from_raw_os_error(libc::EINTR))
    }

    fn frame(&mut self, request: &NetlinkRequest, flags: u16) -> Vec<u8> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.length = (HEADER_LEN + request.body.len()) as u32;
        header.message_type = request.kind;
        header.flags = NLM_F_REQUEST | request.flags | flags;
        header.sequence_number = self.sequence;
        let mut octets = vec![0; HEADER_LEN];
        header.emit(&mut octets);
        octets.extend(&request.body);
        octets.resize(octets.len().next_multiple_of(4), 0);
        octets
    }

    /// Reads one datagram; `each` says of every message whether more are wanted.
    fn receive(&self, each: impl FnMut(&NetlinkHeader, &[u8]) -> io::Result<bool>) -> io::Result<()> {
        let mut buffer = vec![0; REPLY_LEN_MAX];
        let len = loop {
            match recv(self.fd.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Err(Errno::EINTR) => {}
                len => break len?,
            }
        };
        messages(&buffer[..len], each)
    }
}

/// The messages of one datagram; `each` says whether more are wanted.
///
/// # Errors
/// One that is cut off, or what `each` says.
pub fn messages(octets: &[u8], mut each: impl FnMut(&NetlinkHeader, &[u8]) -> io::Result<bool>) -> io::Result<()> {
    let mut rest = octets;
    while !rest.is_empty() {
        let message = NetlinkBuffer::new_checked(rest).map_err(io::Error::other)?;
        let mut header = NetlinkHeader::default();
        header.length = message.length();
        header.message_type = message.message_type();
        header.flags = message.flags();
        header.sequence_number = message.sequence_number();
        if !each(&header, message.payload())? {
            return Ok(());
        }
        rest = rest.get((message.length() as usize).next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(())
}

/// An attribute.
pub fn attribute(kind: u16, value: &[u8]) -> DefaultNla {
    DefaultNla::new(kind, value.to_vec())
}

/// An attribute that holds others.
pub fn nest(kind: u16, inner: &[DefaultNla]) -> DefaultNla {
    DefaultNla::new(kind | NLA_F_NESTED, emit(inner))
}

/// Attributes as the kernel reads them.
pub fn emit(attributes: &[DefaultNla]) -> Vec<u8> {
    let mut octets = vec![0; attributes.buffer_len()];
    attributes.emit(&mut octets);
    octets
}

/// Kinds and values; what is cut off ends them.
pub fn attributes(octets: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(octets).map_while(Result::ok).map(|attribute| {
        let (kind, len) = (attribute.kind(), usize::from(attribute.length()));
        (kind, &attribute.into_inner()[4..len])
    })
}

/// The first attribute of a kind.
pub fn find(octets: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(octets).find(|(other, _)| *other == kind).map(|(_, value)| value)
}

/// A number in the machine's own order, of as many octets as there are.
pub fn number(value: &[u8]) -> Option<u64> {
    Some(match *value {
        [one] => u64::from(one),
        [a, b] => u64::from(u16::from_ne_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_ne_bytes([a, b, c, d])),
        _ => u64::from_ne_bytes(value.try_into().ok()?),
    })
}

/// Text up to its zero byte.
pub fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

/// The number of the error that an acknowledgement or the end of a dump begins with.
fn errno_of(payload: &[u8]) -> i32 {
    payload.get(..4).and_then(|four| four.try_into().ok()).map_or(0, |four| i32::from_ne_bytes(four).wrapping_neg())
}

/// What the kernel says besides, which follows the header of the request: capped, as asked for.
fn words(flags: u16, payload: &[u8]) -> String {
    let said = (flags & NLM_F_ACK_TLVS != 0).then(|| payload.get(4 + HEADER_LEN..)).flatten();
    said.and_then(|said| find(said, NLMSGERR_ATTR_MSG)).map(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn attributes_come_back_as_they_were_written() {
        let written = emit(&[attribute(1, b"abc"), nest(2, &[attribute(3, &7_u16.to_ne_bytes())]), attribute(4, &[])]);
        let read: Vec<(u16, &[u8])> = attributes(&written).collect();
        assert_eq!(read.len(), 3);
        assert_eq!((read[0], read[2]), ((1, &b"abc"[..]), (4, &b""[..])));
        assert_eq!(find(read[1].1, 3).and_then(number), Some(7));
        for end in 0..written.len() {
            assert!(attributes(&written[..end]).count() <= 3);
        }
    }

    #[test]
    fn a_refusal_tells_its_words_and_its_place() {
        let mut netlink = Netlink::open(SockProtocol::NetlinkRoute).expect("a socket");
        // No device has this index; requests around it are fine, as they only ask for nothing to change.
        let set = |index: i32| {
            let header = [&[0_u8, 0, 0, 0][..], &index.to_ne_bytes(), &[0; 8]].concat();
            NetlinkRequest { kind: libc::RTM_SETLINK, flags: 0, body: header }
        };
        let refused = netlink.change(&[set(i32::MAX), set(i32::MAX - 1)]).expect_err("no such device");
        assert_eq!((refused.at, refused.errno), (0, Errno::ENODEV));
        let devices = netlink.dump(&NetlinkRequest { kind: libc::RTM_GETLINK, flags: 0, body: vec![0; 16] });
        assert!(devices.is_ok_and(|devices| !devices.is_empty()), "loopback is everywhere");
    }

    proptest! {
        /// What is said of an acknowledgement, of attributes and of their values, whatever came.
        #[test]
        fn any_octets_are_read(octets in vec(any::<u8>(), 0..300), flags: u16) {
            let mut taken = 0;
            let whole = messages(&octets, |header, payload| {
                taken += payload.len() + HEADER_LEN;
                let _ = (errno_of(payload), words(header.flags, payload));
                Ok(true)
            });
            prop_assert!(taken <= octets.len() && (whole.is_err() || octets.is_empty() || taken > 0));
            let _ = (errno_of(&octets), words(flags, &octets));
            let values: usize = attributes(&octets).map(|(_, value)| value.len() + text(value).len().min(1)).sum();
            prop_assert!(values <= octets.len());
        }
    }
}

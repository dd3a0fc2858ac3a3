//! A small network of network namespaces, in which packets can be dropped between any two places, one way or both.
//!
//! Each place is a namespace with one address; all are joined by a router, a namespace too, which forwards. A cut is a
//! routing rule of the router: packets vanish, and nobody is told, as with a pulled cable. Nothing of it is seen by the
//! machine's own network. The namespaces live as long as a sleeping process in each; those are ended when the
//! [`Network`] is dropped, and by the kernel when the test process dies.
//!
//! It needs root and a kernel that permits namespaces; where there are none, [`Network::of`] says so.

mod place;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Command, Output};

pub use place::Place;

use crate::find;
use place::Holder;

/// See the module.
#[derive(Debug)]
pub struct Network {
    router: Holder,
    places: Vec<Place>,
}

impl Network {
    /// A network of so many places.
    ///
    /// # Errors
    /// Namespaces are not permitted here; the reason in words.
    pub fn of(places: usize) -> Result<Self, String> {
        let router = Holder::start()?;
        run(router.enter("ip").args(["link", "set", "lo", "up"]))?;
        run(router.enter("sh").args(["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]))?;
        let mut network = Self { router, places: Vec::new() };
        for number in 0..places {
            network.add(number)?;
        }
        Ok(network)
    }

    fn add(&mut self, number: usize) -> Result<(), String> {
        let subnet = u8::try_from(number + 1).map_err(|_| "too many places".to_owned())?;
        let (here, router) = (Ipv4Addr::new(10, 77, subnet, 2), Ipv4Addr::new(10, 77, subnet, 1));
        let (holder, port) = (Holder::start()?, format!("p{number}"));
        let pid = holder.pid().to_string();
        let ip = |holder: &Holder, line: &str| run(holder.enter("ip").args(line.split(' ')));
        ip(&self.router, &format!("link add {port} type veth peer name eth0 netns {pid}"))?;
        ip(&self.router, &format!("addr add {router}/24 dev {port}"))?;
        ip(&self.router, &format!("link set {port} up"))?;
        ip(&holder, "link set lo up")?;
        ip(&holder, &format!("addr add {here}/24 dev eth0"))?;
        ip(&holder, "link set eth0 up")?;
        ip(&holder, &format!("route add default via {router}"))?;
        self.places.push(Place::new(holder, here));
        Ok(())
    }

    /// A place, counted from 0.
    pub fn place(&self, number: usize) -> &Place {
        &self.places[number]
    }

    /// From now on nothing that `from` sends reaches `to`.
    pub fn cut_one_way(&self, from: usize, to: usize) {
        self.rule("add", from, to);
    }

    /// From now on neither of the two hears of the other.
    pub fn cut(&self, one: usize, other: usize) {
        self.cut_one_way(one, other);
        self.cut_one_way(other, one);
    }

    /// Everybody reaches everybody again.
    pub fn heal(&self) {
        let line = "while ip rule del pref 100 2>/dev/null; do :; done";
        run(self.router.enter("sh").args(["-c", line])).expect("rules can be removed");
    }

    /// A listener at a place. It is accepted from wherever the caller is, so that something of the machine's own
    /// network, such as an engine, can be offered there through a [`crate::Proxy`].
    pub fn listen(&self, place: usize) -> TcpListener {
        let address = SocketAddr::from((self.place(place).address(), 0));
        self.place(place).run(|| TcpListener::bind(address)).expect("the place has a free port")
    }

    fn rule(&self, verb: &str, from: usize, to: usize) {
        let [from, to] = [from, to].map(|place| self.place(place).address());
        let line = format!("rule {verb} pref 100 from {from} to {to} blackhole");
        run(self.router.enter("ip").args(line.split(' '))).expect("rules can be changed");
    }
}

/// Runs a command to its end; what it said if it failed.
fn run(command: &mut Command) -> Result<Output, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(output),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// `nsenter` into the namespaces of a process.
fn enter(pid: u32, program: &str) -> Command {
    let mut command = Command::new(find::program("nsenter", "util-linux"));
    command.arg(format!("--net=/proc/{pid}/ns/net")).arg("--");
    command.arg(match program {
        "ip" => find::program("ip", "iproute2"),
        other => other.into(),
    });
    command
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;

    #[test]
    fn packets_pass_until_they_are_cut_and_again_when_healed() {
        let network = match Network::of(2) {
            Ok(network) => network,
            Err(why) => return println!("NOT RUN: no network namespaces here: {why}"),
        };
        let listener = network.listen(1);
        let address = listener.local_addr().unwrap();
        let connect = || {
            let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(400));
            network.place(0).run(connect).is_ok()
        };
        let mut established = network.place(0).run(|| TcpStream::connect(address)).unwrap();
        let (mut accepted, from) = listener.accept().unwrap();
        assert_eq!(from.ip(), network.place(0).address());
        network.cut_one_way(1, 0);
        assert!(!connect(), "the answer is lost");
        network.heal();
        network.cut_one_way(0, 1);
        assert!(!connect(), "the question is lost");
        established.write_all(b"late").unwrap();
        network.heal();
        let mut room = [0; 4];
        accepted.read_exact(&mut room).unwrap();
        assert_eq!(&room, b"late", "what was sent while it was cut arrives when it is healed");
        assert!((0..100).any(|_| connect()));
    }
}

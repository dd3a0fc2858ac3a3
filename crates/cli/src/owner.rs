//! The owner that a lease gets when none is named: `user@host:pid`.

use leasehold_types::OwnerId;

/// The pid is that of the process that called us, such as the script: ours is gone before anyone could look for it.
pub(crate) fn default_owner() -> OwnerId {
    let text = format!("{}@{}:{}", user(), host(), std::os::unix::process::parent_id());
    let clean: String = text.chars().filter(|c| !c.is_control()).collect();
    OwnerId::new(&clean).expect("it has an @, no control character, and its parts are cut short")
}

fn user() -> String {
    let named =
        ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|user| !user.is_empty()));
    let user = named.or_else(user_of_system).unwrap_or_else(|| "unknown".into());
    user.chars().take(32).collect()
}

/// A service often runs without these variables; the system's list of users still knows it.
fn user_of_system() -> Option<String> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut lines = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let user = lines.find(|fields| fields.get(2) == Some(&uid.as_str()))?;
    Some(user[0].to_owned())
}

fn host() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().chars().take(64).filter(|c| c.is_ascii()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_owner_names_user_host_and_calling_process() {
        let owner = default_owner();
        let (user, rest) = owner.as_str().split_once('@').unwrap();
        let (_, pid) = rest.rsplit_once(':').unwrap();
        assert!(!user.is_empty());
        assert_eq!(pid.parse(), Ok(std::os::unix::process::parent_id()));
    }
}

//! The address of a Valkey server, from its URL.

use crate::error::ValkeyError;

/// A server, and the credentials for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValkeyServer {
    /// Its address.
    pub address: ValkeyAddress,
    /// Empty for the default user.
    pub user: String,
    /// Empty if none is needed.
    pub password: String,
    /// The number of the database.
    pub database: u32,
    /// `None` for plain text.
    pub tls: Option<Tls>,
}

/// The parameters of a TLS connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// The name that the server's certificate must have.
    pub name: String,
    /// The file with trusted certificate authorities; empty for the system's.
    pub authorities: String,
}

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValkeyAddress {
    /// `host:port`.
    Tcp(String),
    /// The path of a socket.
    Unix(String),
}

const DEFAULT_PORT: u16 = 6379;

impl ValkeyServer {
    /// Parses `redis://[[user]:password@]host[:port][/database]` or `unix://[…@]path`. `rediss`
    /// selects TLS; `?ssl_ca_certs=path` names the trusted authorities.
    pub fn parse(url: &str) -> Result<Self, ValkeyError> {
        let wrong =
            || ValkeyError::Misconfigured("not a URL of a Valkey server that nodes can reach");
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (login, place) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let (address, database) = match scheme {
            "redis" | "valkey" | "rediss" | "valkeys" => {
                let (host, database) = place.split_once('/').unwrap_or((place, ""));
                (ValkeyAddress::Tcp(with_port(host)), database)
            }
            "unix" => (ValkeyAddress::Unix(place.to_owned()), ""),
            _ => return Err(wrong()),
        };
        let by_tls = matches!(scheme, "rediss" | "valkeys");
        let tls = by_tls.then(|| tls(&address, options)).transpose()?;
        Ok(Self {
            address,
            user: unquoted(user).ok_or_else(wrong)?,
            password: unquoted(password).ok_or_else(wrong)?,
            database: match database {
                "" => 0,
                number => number.parse().map_err(|_| wrong())?,
            },
            tls,
        })
    }
}

fn tls(address: &ValkeyAddress, options: &str) -> Result<Tls, ValkeyError> {
    let wrong =
        || ValkeyError::Misconfigured("the only supported TLS option is `ssl_ca_certs=<path>`");
    let ValkeyAddress::Tcp(place) = address else {
        return Err(wrong());
    };
    let name = place
        .rsplit_once(':')
        .map_or(place.as_str(), |(name, _)| name);
    let mut tls = Tls {
        name: name.trim_matches(['[', ']']).to_owned(),
        authorities: String::new(),
    };
    for option in options.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("ssl_ca_certs", path)) => {
                tls.authorities = unquoted(path).ok_or_else(wrong)?;
            }
            // To disable verification, plain text must be used instead.
            Some(("ssl_cert_reqs", "required")) => {}
            Some((name, _)) if name.starts_with("ssl_") => return Err(wrong()),
            _ => {}
        }
    }
    Ok(tls)
}

/// An IPv6 address is in brackets, so a colon after them starts the port.
fn with_port(host: &str) -> String {
    let name = if host.is_empty() { "localhost" } else { host };
    let after_brackets = name.rsplit(']').next().unwrap_or(name);
    if after_brackets.contains(':') {
        name.to_owned()
    } else {
        format!("{name}:{DEFAULT_PORT}")
    }
}

/// Replaces `%xx`.
fn unquoted(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            let digits = std::str::from_utf8(&digits).ok()?.to_owned();
            bytes.push(u8::from_str_radix(&digits, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_address_login_and_database() {
        let server = ValkeyServer::parse("redis://me:p%40ss@example.org:7000/3?x=1").unwrap();
        assert_eq!(
            server.address,
            ValkeyAddress::Tcp("example.org:7000".into())
        );
        assert_eq!(
            (server.user.as_str(), server.password.as_str()),
            ("me", "p@ss")
        );
        assert_eq!(server.database, 3);
    }

    #[test]
    fn omitted_settings_have_their_defaults() {
        let server = ValkeyServer::parse("redis://:secret@[::1]").unwrap();
        assert_eq!(server.address, ValkeyAddress::Tcp("[::1]:6379".into()));
        assert_eq!(
            (server.user.as_str(), server.password.as_str()),
            ("", "secret")
        );
        assert_eq!(server.database, 0);
    }

    #[test]
    fn a_tls_server_is_verified_by_its_name_and_issuer() {
        let server =
            ValkeyServer::parse("rediss://u:p@example.org/2?ssl_ca_certs=%2Fca.pem").unwrap();
        assert_eq!(
            server.address,
            ValkeyAddress::Tcp("example.org:6379".into())
        );
        let tls = server.tls.unwrap();
        assert_eq!(
            (tls.name.as_str(), tls.authorities.as_str()),
            ("example.org", "/ca.pem")
        );
        let tls = ValkeyServer::parse("rediss://[::1]:7000")
            .unwrap()
            .tls
            .unwrap();
        assert_eq!((tls.name.as_str(), tls.authorities.as_str()), ("::1", ""));
        assert_eq!(ValkeyServer::parse("redis://host").unwrap().tls, None);
    }

    #[test]
    fn a_socket_has_a_path() {
        let server = ValkeyServer::parse("unix:///run/valkey.sock").unwrap();
        assert_eq!(
            server.address,
            ValkeyAddress::Unix("/run/valkey.sock".into())
        );
    }

    #[test]
    fn unreachable_addresses_are_rejected() {
        for url in [
            "rediss://host?ssl_cert_reqs=none",
            "http://host",
            "host",
            "redis://host/x",
            "redis://:%4@h",
        ] {
            assert!(ValkeyServer::parse(url).is_err(), "{url}");
        }
    }
}

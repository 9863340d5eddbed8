//! TLS to Valkey. The server must present a certificate for its name, issued by a trusted authority.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::error::ValkeyError;
use crate::server::Tls;

/// Where systems keep their trusted certificates.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
];

/// A TLS connection.
pub(crate) type Stream = StreamOwned<ClientConnection, TcpStream>;

/// Speaks TLS over a connection. The handshake is done with the first bytes.
pub(crate) fn over(stream: TcpStream, tls: &Tls) -> Result<Stream, ValkeyError> {
    let name = ServerName::try_from(tls.name.clone());
    let name =
        name.map_err(|_| ValkeyError::Misconfigured("the server has no name for a certificate"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(authorities(&tls.authorities)?)
        .with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(connection, stream))
}

fn authorities(path: &str) -> Result<RootCertStore, ValkeyError> {
    let pem = if path.is_empty() {
        let named = std::env::var("SSL_CERT_FILE").ok();
        let known = named.as_deref().into_iter().chain(SYSTEM);
        known.map(fs::read).find_map(Result::ok)
    } else {
        Some(fs::read(path)?)
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem.unwrap_or_default()) {
        let certificate = certificate.map_err(|error| io::Error::other(error.to_string()))?;
        // One that cannot be parsed is not trusted.
        let _ = roots.add(certificate);
    }
    if roots.is_empty() {
        return Err(ValkeyError::Misconfigured(
            "no trusted certificate authority is available",
        ));
    }
    Ok(roots)
}

//! What HTTPS is served with: a certificate and its key, read once at the start.

use std::{fmt, io, path::PathBuf, sync::Arc};

use rustls_pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject as _},
};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{self, ServerConfig, crypto::ring},
    server::TlsStream,
};

use crate::options::TlsOptions;

/// Why there is nothing to serve HTTPS with.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The certificate cannot be had from its file.
    #[error("the certificate {} {problem}; it is a PEM file, as tls_cert names it", .file.display())]
    Certificate {
        /// The file named.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The private key cannot be had from its file.
    #[error("the private key {} {problem}; it is a PEM file, as tls_key names it", .file.display())]
    Key {
        /// The file named.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Both can be read, and do not go together.
    #[error("{} is not the private key of {}: {source}", .key.display(), .certificate.display())]
    Pair {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What TLS said.
        #[source]
        source: rustls::Error,
    },
}

/// Our half of TLS handshakes.
#[derive(Clone)]
pub(crate) struct Tls(TlsAcceptor);

impl fmt::Debug for Tls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Tls")
    }
}

impl Tls {
    /// Shakes hands over a connection.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.0.accept(stream).await
    }
}

/// Reads the files. TLS 1.2 and 1.3 are spoken, and HTTP/1.1 inside.
pub(crate) fn acceptor(options: &TlsOptions) -> Result<Tls, TlsError> {
    let TlsOptions { certificate: certificate_file, key: key_file } = options;
    let no_certificate =
        |problem| TlsError::Certificate { file: certificate_file.clone(), problem };
    let certificates = CertificateDer::pem_file_iter(certificate_file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| no_certificate(problem(&error)))?;
    if certificates.is_empty() {
        return Err(no_certificate("holds no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(key_file)
        .map_err(|error| TlsError::Key { file: key_file.clone(), problem: problem(&error) })?;
    let refused = |source| TlsError::Pair {
        certificate: certificate_file.clone(),
        key: key_file.clone(),
        source,
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(refused)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(refused)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Tls(TlsAcceptor::from(Arc::new(config))))
}

fn problem(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => format!("cannot be read: {error}"),
        pem::Error::NoItemsFound => "holds nothing of the kind".to_owned(),
        other => format!("is not whole: {other}"),
    }
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;

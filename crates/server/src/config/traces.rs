//! Where traces go.

use serde::{Deserialize, Serialize};

use super::ConfigError;

/// Traces as they are written.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawTraces {
    /// The collector that takes OTLP over HTTP; none are made without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The part of the requests without a trace of their own for which one is begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
}

/// Where traces go, and which.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceSettings {
    /// The collector that takes OTLP over HTTP.
    pub endpoint: String,
    /// The part of the requests without a trace of their own for which one is begun, from 0 to 1.
    pub ratio: f64,
}

impl RawTraces {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn under(self, over: Self) -> Self {
        Self { endpoint: over.endpoint.or(self.endpoint), ratio: over.ratio.or(self.ratio) }
    }

    pub(super) fn resolve(self) -> Result<Option<TraceSettings>, ConfigError> {
        let ratio = self.ratio.unwrap_or(1.0);
        if !(0.0..=1.0).contains(&ratio) {
            return Err(ConfigError::new("traces.ratio", "must be from 0 to 1"));
        }
        match self.endpoint {
            Some(endpoint) => Ok(Some(TraceSettings { endpoint, ratio })),
            None if self.ratio.is_some() => {
                Err(ConfigError::new("traces.ratio", "says nothing without traces.endpoint"))
            }
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::RawConfig;

    fn resolved(text: &str) -> Result<Option<f64>, String> {
        let config = RawConfig::from_toml(text).unwrap().resolve().map_err(|error| error.to_string())?;
        Ok(config.traces.map(|traces| traces.ratio))
    }

    #[test]
    fn traces_are_made_only_when_it_is_said_where_they_go() {
        assert_eq!(resolved(""), Ok(None));
        assert_eq!(resolved("[traces]\nendpoint = \"http://127.0.0.1:4318\""), Ok(Some(1.0)));
        assert_eq!(resolved("[traces]\nendpoint = \"http://c\"\nratio = 0.01"), Ok(Some(0.01)));
        for wrong in ["ratio = 0.5", "endpoint = \"http://c\"\nratio = 2.0"] {
            assert!(resolved(&format!("[traces]\n{wrong}")).is_err(), "{wrong}");
        }
    }
}

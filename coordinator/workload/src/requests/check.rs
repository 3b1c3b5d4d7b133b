//! Checks of a source of requests, before any request is drawn.

use dormouse_cloud::Market;
use dormouse_units::{Ppm, Span};

use super::arrivals::RequestArrivals;
use super::law::DurationLaw;
use super::model::RequestModel;
use super::offer::{Offer, OfferRefusal};
use super::stream::{RequestSource, RequestSpec};

/// Least probability that a draw lies within the bounds of a law: below it, too many draws are
/// needed.
const LEAST_WITHIN: f64 = 0.001;

/// Greatest number of requests of a stream; more are probably a mistake.
const MOST_REQUESTS: f64 = 1e9;

/// Greatest number of changes between calm and burst between two requests.
const MOST_TURNS: f64 = 1_000.0;

/// Greatest time of a run (31,000 years), so that sums can't overflow.
pub(super) const LAST: Span = Span::from_secs(1_000_000_000_000);

/// A mistake in a source of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFlaw {
    /// Path of the key with the mistake, such as `model.duration.least` or `request.3.at`.
    pub key: String,
    /// What is wrong with the key's value, and the remedy.
    pub refusal: OfferRefusal,
}

impl RequestSource {
    /// All mistakes of a source: laws without valid values, requests out of order, and, if the
    /// offer is known, what the provider does not sell. A CSV file is not opened.
    #[must_use]
    pub fn flaws(&self, offer: Option<&Offer>) -> Vec<RequestFlaw> {
        let mut found = RequestFlaws::default();
        match self {
            Self::Written { request } => check_written(request, offer, &mut found),
            Self::Csv { .. } => {}
            Self::Model { model } => of_model(model, offer, &mut found),
        }
        found.0
    }
}

/// Collects the flaws of a source of requests.
#[derive(Debug, Default)]
struct RequestFlaws(Vec<RequestFlaw>);

impl RequestFlaws {
    fn add(&mut self, key: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) {
        self.add_refusal(key, OfferRefusal::new(what, remedy));
    }

    fn add_refusal(&mut self, key: impl Into<String>, refusal: OfferRefusal) {
        let flaw = RequestFlaw { key: key.into(), refusal };
        // A type without room has none in either market.
        if self.0.last() != Some(&flaw) {
            self.0.push(flaw);
        }
    }
}

fn check_written(requests: &[RequestSpec], offer: Option<&Offer>, found: &mut RequestFlaws) {
    let mut before = Span::ZERO;
    for (n, spec) in requests.iter().enumerate() {
        let key = |key: &str| format!("request.{n}.{key}");
        if spec.at < before {
            let what = format!("{} is before the request above it", spec.at);
            found.add(key("at"), what, "write the requests in the order of their times");
        }
        before = spec.at;
        for (name, time) in [("at", spec.at), ("duration", spec.duration)] {
            if time > LAST {
                found.add(key(name), format!("{time} is too large"), "write an earlier time");
            }
        }
        if spec.duration == Span::ZERO {
            found.add(
                key("duration"),
                "0s is too little",
                "write a length above 0, such as \"2h\"",
            );
        }
        if let Some(offer) = offer {
            check_sold(offer, spec.kind.as_str(), spec.market, &key("type"), found);
        }
    }
}

fn check_sold(offer: &Offer, kind: &str, market: Market, key: &str, found: &mut RequestFlaws) {
    if let Err(refusal) = offer.find_sold(kind, market) {
        found.add_refusal(key, refusal);
    }
}

fn of_model(model: &RequestModel, offer: Option<&Offer>, found: &mut RequestFlaws) {
    if model.requests.is_none() && model.lasts.is_none() {
        let remedy = "say how many requests there are, such as: requests = 1_000_000, or for how long \
                      they come: lasts = \"30d\"";
        found.add("model", "it has no end", remedy);
    }
    check_arrivals(&model.arrivals, found);
    if let (None, Some(lasts)) = (model.requests, model.lasts) {
        let expected = model.arrivals.rate() * lasts.as_secs_f64();
        if expected > MOST_REQUESTS {
            let what =
                format!("{expected:.1e} requests are expected, more than {MOST_REQUESTS:.0e}");
            found.add("model.lasts", what, "let it last less long, or give `requests` as well");
        }
    }
    check_law(&model.duration, "model.duration", found);
    if let Some(preemptible) = &model.preemptible_duration {
        check_law(preemptible, "model.preemptible-duration", found);
    }
    if model.mix.is_empty() {
        let remedy = "add one, such as: mix = [{ type = \"c3.large\" }]";
        found.add("model.mix", "no type is requested", remedy);
    }
    for (n, share) in model.mix.iter().enumerate() {
        let key = |key: &str| format!("model.mix.{n}.{key}");
        if share.weight == Ppm::ZERO {
            found.add(
                key("weight"),
                "0 is not a weight",
                "write a number above 0, or leave it out",
            );
        }
        if model.mix[..n].iter().any(|other| other.kind == share.kind) {
            let remedy = "take one out, and give the other both weights together";
            found.add(key("type"), format!("{} is there a second time", share.kind), remedy);
        }
        let preemptible = model.preemptible_of(share);
        if preemptible > Ppm::ONE {
            let at = if share.preemptible.is_some() {
                key("preemptible")
            } else {
                "model.preemptible".into()
            };
            found.add(
                at,
                format!("{} is not a share", preemptible.as_f64()),
                "write a number from 0 to 1",
            );
        }
        let Some(offer) = offer else { continue };
        if let Err(refusal) = offer.find_type(share.kind.as_str()) {
            found.add_refusal(key("type"), refusal);
            continue;
        }
        if preemptible > Ppm::ZERO {
            check_sold(offer, share.kind.as_str(), Market::Spot, &key("type"), found);
        }
        if preemptible < Ppm::ONE {
            check_sold(offer, share.kind.as_str(), Market::OnDemand, &key("type"), found);
        }
    }
}

fn check_arrivals(arrivals: &RequestArrivals, found: &mut RequestFlaws) {
    let key = |key: &str| format!("model.arrivals.{key}");
    let mut positive = |name: &str, time: Span| {
        if time == Span::ZERO || time > LAST {
            found.add(
                key(name),
                format!("{time} is out of range"),
                "write a length above 0, such as \"30s\"",
            );
        }
    };
    match arrivals {
        RequestArrivals::Poisson { every } => positive("every", *every),
        RequestArrivals::Diurnal { every, amplitude, period, peak, weekend } => {
            positive("every", *every);
            positive("period", *period);
            for (name, part) in
                [("amplitude", *amplitude), ("weekend", weekend.unwrap_or_default())]
            {
                if part > Ppm::ONE {
                    let what = format!("{} is out of range", part.as_f64());
                    found.add(key(name), what, "write a number from 0 to 1");
                }
            }
            if peak.is_some_and(|peak| peak >= *period) {
                let what = format!("the peak is not within the period of {period}");
                found.add(key("peak"), what, "count it from the beginning of a period");
            }
        }
        RequestArrivals::Bursts { every, burst_every, calm, burst } => {
            for (name, time) in
                [("every", every), ("burst-every", burst_every), ("calm", calm), ("burst", burst)]
            {
                positive(name, *time);
            }
            let turns = 2.0 / (calm.as_secs_f64() + burst.as_secs_f64()) / arrivals.rate();
            if turns > MOST_TURNS {
                let what = "bursts come and go a thousand times from one request to the next";
                let remedy = "write longer ones, or process = \"poisson\", which this comes to";
                found.add(key("burst"), what, remedy);
            }
        }
    }
}

fn check_law(law: &DurationLaw, key: &str, found: &mut RequestFlaws) {
    let (least, most) = law.bounds();
    if most < least {
        let what = format!("its longest duration, {most}, is shorter than its shortest, {least}");
        return found.add(key, what, "let `most` be at least `least`");
    }
    if least == Span::ZERO || (least > LAST) {
        return found.add(
            key,
            format!("{least} is not a duration"),
            "write a length above 0, such as \"2h\"",
        );
    }
    let within = law.probability_within();
    if within.is_nan() || within < LEAST_WITHIN {
        let what = "fewer than one of a thousand of its draws lies between `least` and `most`";
        found.add(key, what, "let them be around its mean, or use law = \"uniform\"");
    }
}

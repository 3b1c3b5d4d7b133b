//! Simulated workers: the real session client over machines in memory.

use dormouse_identity::WorkerLife;
use dormouse_units::Ppm;
use serde::{Deserialize, Serialize};
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerPlan { pub name: String, pub millicores: u32, pub memory: u64, pub honesty: Honesty, pub rates: Rates, pub seed: u64 }
impl WorkerPlan { pub fn sound(name: &str, seed: u64) -> Self { Self { name: name.to_owned(), millicores: 2000, memory: 8<<30, honesty: Honesty::Honest, rates: Rates::default(), seed } } }
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates { pub create: Ppm, pub freeze: Ppm, pub birth: Ppm, pub restore: Ppm, pub dump: Ppm, pub damage: Ppm, pub exit: Ppm, pub hang: Ppm, pub rot: Ppm }
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Honesty { #[default] Honest, Unworked(Ppm), WrongAnswers(Ppm), Inventions(Ppm), Miscounts(Ppm), GarbageCheckpoints(Ppm), Silence(Ppm), Floods(Ppm) }
#[derive(Debug)] pub struct SimulatedWorker;
impl SimulatedWorker {
 pub fn start(_: &WorkerPlan, _: crate::network::Port, _: Option<WorkerLife>, _: crate::witness::Witness) -> Self { Self }
 pub fn kill(&self) {} pub fn pause(&self, _: std::time::Duration) {} pub fn is_over(&self) -> bool { false } pub fn life(&self) -> Option<WorkerLife> { None }
 pub fn left(&self) -> Vec<u8> { Vec::new() }
}

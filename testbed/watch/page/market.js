// Markets of VMs: spot, burstable and on demand, each with its colour. A provider's customers request normal and preemptible
// VMs: the same markets by the words of its reports.

/** The markets with the number of their colour, in the order in which they are told. */
export const MARKETS = [
  { key: "ondemand", name: "on demand", colour: 0 },
  { key: "spot", name: "spot", colour: 1 },
  { key: "burstable", name: "burstable", colour: 2 },
];

const CUSTOMERS_WORDS = { ondemand: "normal", spot: "preemptible" };

/** The word for a market in a run: in one of customers' requests alone, what they request. */
export function marketName({ key, name }, { isProvider }) {
  return (isProvider && CUSTOMERS_WORDS[key]) || name;
}

/** The vCPUs of each market in words: "20 on demand, 11 spot"; "none" if nothing is used. */
export function marketWords(usage, count, history) {
  const parts = MARKETS.filter(({ key }) => usage[key] > 0).map((market) => `${count(usage[market.key])} ${marketName(market, history)}`);
  return parts.join(", ") || "none";
}

/** How many of these VMs each market has. */
export function vmsByMarket(vms) {
  const numbers = { ondemand: 0, spot: 0, burstable: 0 };
  for (const vm of vms) numbers[vm.sale.key] += 1;
  return numbers;
}

const BY_KEY = Object.fromEntries(MARKETS.map((market) => [market.key, market]));

/** Whether a VM in this state uses its host: from when it is ready until it ends, except while it is hibernated. */
export function usesHost(state) {
  return state !== "boot" && state !== "hibernated" && state !== "ended";
}

/** The market of a VM of this type; one that is burstable and on spot is spot. */
export function marketOf(type, market, types) {
  if (market === "spot") return BY_KEY.spot;
  return types?.[type]?.burstable ? BY_KEY.burstable : BY_KEY.ondemand;
}

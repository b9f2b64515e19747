import type { Family, Stability } from "./family.ts";
import { Counter, type Description, Gauge, Histogram, type Instrument } from "./instruments.ts";

/** Instruments that are shown together. */
export class Registry {
  readonly #instruments: Instrument[] = [];

  counter<const Labels extends readonly string[]>(
    name: string,
    help: string,
    labels: Labels,
    stability: Stability = "ALPHA",
  ): Counter<Labels> {
    return this.#add(new Counter(describe(name, help, labels, stability)));
  }

  gauge<const Labels extends readonly string[]>(
    name: string,
    help: string,
    labels: Labels,
    stability: Stability = "ALPHA",
  ): Gauge<Labels> {
    return this.#add(new Gauge(describe(name, help, labels, stability)));
  }

  histogram<const Labels extends readonly string[]>(
    name: string,
    help: string,
    labels: Labels,
    bounds: readonly number[],
    stability: Stability = "ALPHA",
  ): Histogram<Labels> {
    return this.#add(new Histogram(describe(name, help, labels, stability), bounds));
  }

  /** All families, those without series among them. */
  families(): Family[] {
    return this.#instruments.map((instrument) => instrument.family());
  }

  #add<T extends Instrument>(instrument: T): T {
    this.#instruments.push(instrument);
    return instrument;
  }
}

function describe<Labels extends readonly string[]>(
  name: string,
  help: string,
  labels: Labels,
  stability: Stability,
): Description<Labels> {
  return { name, help, labels, stability };
}

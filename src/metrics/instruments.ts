import type { Family, FamilyHead, HistogramSample, Sample, Stability } from "./family.ts";

/** What names an instrument; the labels' values come with each observation, in this order. */
export interface Description<Labels extends readonly string[] = readonly string[]> {
  readonly name: string;
  readonly help: string;
  readonly stability: Stability;
  readonly labels: Labels;
}

/** As many values as there are labels. */
export type LabelValues<Labels extends readonly string[]> = { readonly [K in keyof Labels]: string };

export interface Instrument {
  family(): Family;
}

/** Between the values of a key: no label value of Kubernetes holds it. */
const separator = "\u0000";

abstract class Series<Labels extends readonly string[], T> {
  protected readonly description: Description<Labels>;
  protected readonly series = new Map<string, { readonly labels: readonly string[]; value: T }>();

  constructor(description: Description<Labels>) {
    this.description = description;
    // A name without labels has its one series from the start: nothing so far is something to know.
    if (description.labels.length === 0) this.at([]);
  }

  protected abstract none(): T;

  protected at(labels: readonly string[]): { readonly labels: readonly string[]; value: T } {
    const key = labels.join(separator);
    let entry = this.series.get(key);
    if (entry === undefined) this.series.set(key, (entry = { labels, value: this.none() }));
    return entry;
  }

  /** Forgets the series that the test picks. */
  remove(isGone: (labels: readonly string[]) => boolean): void {
    for (const [key, { labels }] of this.series) if (isGone(labels)) this.series.delete(key);
  }

  protected head<Type extends FamilyHead["type"]>(type: Type): FamilyHead & { readonly type: Type } {
    return { ...this.description, type };
  }
}

class NumberSeries<Labels extends readonly string[]> extends Series<Labels, number> {
  protected none(): number {
    return 0;
  }

  protected samples(): Sample[] {
    return [...this.series.values()].map(({ labels, value }) => ({ labels, value }));
  }
}

export class Counter<Labels extends readonly string[]> extends NumberSeries<Labels> implements Instrument {
  add(labels: LabelValues<Labels>, by = 1): void {
    this.at(labels).value += by;
  }

  family(): Family {
    return { ...this.head("counter"), samples: this.samples() };
  }
}

export class Gauge<Labels extends readonly string[]> extends NumberSeries<Labels> implements Instrument {
  set(labels: LabelValues<Labels>, value: number): void {
    this.at(labels).value = value;
  }

  add(labels: LabelValues<Labels>, by: number): void {
    this.at(labels).value += by;
  }

  family(): Family {
    return { ...this.head("gauge"), samples: this.samples() };
  }
}

interface Distribution {
  readonly buckets: number[];
  sum: number;
}

export class Histogram<Labels extends readonly string[]> extends Series<Labels, Distribution> implements Instrument {
  readonly #bounds: readonly number[];

  /** @param bounds upper bounds of the buckets, ascending, without infinity */
  constructor(description: Description<Labels>, bounds: readonly number[]) {
    super({ ...description, labels: description.labels });
    this.#bounds = bounds;
  }

  observe(labels: LabelValues<Labels>, value: number): void {
    const distribution = this.at(labels).value;
    const found = this.#bounds.findIndex((bound) => value <= bound);
    const index = found === -1 ? this.#bounds.length : found;
    distribution.buckets[index] = (distribution.buckets[index] ?? 0) + 1;
    distribution.sum += value;
  }

  family(): Family {
    const samples = [...this.series.values()].map(({ labels, value: { buckets, sum } }): HistogramSample => {
      return { labels, buckets: [...this.#bounds, 0].map((_, index) => buckets[index] ?? 0), sum };
    });
    return { ...this.head("histogram"), bounds: this.#bounds, samples };
  }

  protected none(): Distribution {
    return { buckets: [], sum: 0 };
  }
}

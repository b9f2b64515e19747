/** What a name of the journal or an error means, for `podwright explain` and docs/messages.md. */
export interface Meaning {
  /** One or two sentences: when it is recorded, and what it implies. */
  readonly means: string;
  /** What to do about it, an imperative sentence; missing where nothing is wrong. */
  readonly remedy?: string;
}

/** The meanings of all names of one room: a name without one does not compile. */
export type Meanings<Names extends PropertyKey> = Readonly<Record<Names, Meaning>>;

/** The meaning of a name in the journal or of an error, for `podwright explain` and docs/messages.md. */
export interface Meaning {
  /** One or two sentences: when it is recorded, and what it implies. */
  readonly means: string;
  /** What to do about it, an imperative sentence; omitted where nothing is wrong. */
  readonly remedy?: string;
}

/** The meanings of all names of one room: a missing one does not compile. */
export type Meanings<Names extends PropertyKey> = Readonly<Record<Names, Meaning>>;

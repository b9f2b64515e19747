import { YamlError } from "./characters.ts";
import { maxDepth, tooDeep, type MapNode, type YamlNode } from "./nodes.ts";
import { endOfQuoted } from "./texts.ts";

/**
 * The nodes of a JSON value, which has other escapes than YAML and no limit for keys.
 * @param text valid for JSON.parse
 * @param most maximum number of values, including keys
 * @throws YamlError
 */
export function parseJson(text: string, most: number): { readonly node: YamlNode; readonly values: number } {
  const reader = new JsonReader(text, most);
  return { node: reader.read(0), values: reader.values };
}

const filling = /[ \t\r\n,:]*/uy;
const word = /[^ \t\r\n,:[\]{}"]*/uy;

class JsonReader {
  values = 0;
  readonly #text: string;
  readonly #most: number;
  #at = 0;

  constructor(text: string, most: number) {
    this.#text = text;
    this.#most = most;
  }

  read(depth: number): YamlNode {
    const character = this.#peek();
    const start = this.#at;
    if (depth > maxDepth) throw new YamlError(start, tooDeep);
    switch (character) {
      case "[": {
        const items: YamlNode[] = [];
        this.#each("]", () => items.push(this.read(depth + 1)));
        return { kind: "list", start, items };
      }
      case "{": {
        const entries: MapNode["entries"][number][] = [];
        this.#each("}", () => entries.push([this.read(depth + 1), this.read(depth + 1)]));
        return { kind: "map", start, entries };
      }
      case '"':
        this.#at = endOfQuoted(this.#text, start);
        return { kind: "scalar", start, style: "json", text: this.#text.slice(start, this.#at) };
      default:
        this.#skip(word);
        return { kind: "scalar", start, style: "json", text: this.#text.slice(start, this.#at) };
    }
  }

  #each(closing: string, readOne: () => void): void {
    this.#at++;
    while (this.#peek() !== closing && this.values++ < this.#most) readOne();
    this.#at++;
  }

  #peek(): string {
    this.#skip(filling);
    return this.#text.charAt(this.#at);
  }

  #skip(pattern: RegExp): void {
    pattern.lastIndex = this.#at;
    pattern.test(this.#text);
    this.#at = pattern.lastIndex;
  }
}

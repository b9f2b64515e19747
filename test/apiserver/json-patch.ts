import { ApiError, badRequest } from "./api-error.ts";
import { type Draft, type Fields, isFields, type Json, sameJson, textAt } from "./objects.ts";

/** RFC 7386: members replace, `null` removes, lists are replaced as a whole. */
export function mergePatch(target: Json | undefined, patch: Json): Json {
  if (!isFields(patch)) return patch;
  const merged: Draft = isFields(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else if (value !== undefined) merged[name] = mergePatch(merged[name], value);
  }
  return merged;
}

type Container = Draft | Json[];

function tokens(pointer: string): string[] {
  if (pointer === "") return [];
  if (!pointer.startsWith("/")) throw badRequest(`invalid JSON pointer: ${JSON.stringify(pointer)}`);
  return pointer
    .slice(1)
    .split("/")
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function member(container: Json | undefined, token: string): Json | undefined {
  if (Array.isArray(container)) {
    return /^(?:0|[1-9]\d*)$/.test(token) ? (container as Json[])[Number(token)] : undefined;
  }
  return isFields(container) && Object.hasOwn(container, token) ? container[token] : undefined;
}

/** A document under RFC 6902 operations; each error names its operation. */
class PatchedDocument {
  root: Json;

  constructor(root: Json) {
    this.root = root;
  }

  apply(operation: Fields): void {
    const { op, value } = operation;
    const path = textAt(operation, "path");
    const from = textAt(operation, "from");
    if ((op === "add" || op === "replace" || op === "test") && value === undefined) {
      throw badRequest(`JSON patch operation ${op} ${path} has no value`);
    }
    switch (op) {
      case "add":
        return this.#add(path, value as Json);
      case "remove":
        return this.#remove(path);
      case "replace":
        this.#need(path, "replace");
        if (path !== "") this.#remove(path);
        return this.#add(path, value as Json);
      case "move": {
        const moved = this.#need(from, "move");
        this.#remove(from);
        return this.#add(path, moved);
      }
      case "copy":
        return this.#add(path, structuredClone(this.#need(from, "copy")));
      case "test":
        if (!sameJson(this.#get(path), value)) throw this.#refuse(`testing value ${path} failed`);
        return;
      default:
        throw badRequest(`unknown JSON patch operation ${JSON.stringify(op)}`);
    }
  }

  #refuse(why: string): Error {
    return new ApiError(422, "Invalid", `the server rejected our request due to an error in our request: ${why}`);
  }

  #get(pointer: string): Json | undefined {
    let found: Json | undefined = this.root;
    for (const token of tokens(pointer)) found = member(found, token);
    return found;
  }

  #need(pointer: string, operation: string): Json {
    const found = this.#get(pointer);
    if (found === undefined) {
      throw this.#refuse(`${operation} operation does not apply: doc is missing path: ${pointer}`);
    }
    return found;
  }

  #parent(pointer: string): [Container, string] {
    const path = tokens(pointer);
    const last = path.pop() ?? "";
    let parent: Json | undefined = this.root;
    for (const token of path) parent = member(parent, token);
    if (typeof parent !== "object" || parent === null) throw this.#refuse(`doc is missing path: ${pointer}`);
    return [parent as Container, last];
  }

  #add(pointer: string, value: Json): void {
    if (pointer === "") {
      this.root = value;
      return;
    }
    const [parent, token] = this.#parent(pointer);
    if (!Array.isArray(parent)) {
      parent[token] = value;
      return;
    }
    const index = token === "-" ? parent.length : Number(token);
    if (!(index >= 0 && index <= parent.length)) throw this.#refuse(`index out of bounds: ${pointer}`);
    parent.splice(index, 0, value);
  }

  #remove(pointer: string): void {
    this.#need(pointer, "remove");
    const [parent, token] = this.#parent(pointer);
    if (Array.isArray(parent)) parent.splice(Number(token), 1);
    else delete parent[token];
  }
}

/** RFC 6902. @throws ApiError 422 for an operation that does not apply, 400 for an invalid one */
export function jsonPatch(target: Json, patch: Json): Json {
  if (!Array.isArray(patch)) throw badRequest("a JSON patch is a list of operations");
  const document = new PatchedDocument(structuredClone(target));
  for (const operation of patch as Json[]) document.apply(isFields(operation) ? operation : {});
  return document.root;
}

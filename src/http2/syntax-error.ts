/** A peer's bytes violate HTTP; `message` is a clause. */
export class HttpSyntaxError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "HttpSyntaxError";
  }
}

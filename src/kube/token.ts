/** Why a bearer token cannot be sent, without any part of it; undefined: it can. Pure. */
export function tokenProblem(token: string): string | undefined {
  if (token === "") return "is empty";
  // Some servers' tokens have spaces. HTTP/1.1 would refuse a line break in words about headers; HTTP/2 would send it.
  return /^[\t\u0020-\u007E]*$/u.test(token) ? undefined : "holds a line break or another invalid character";
}

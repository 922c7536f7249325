import { h } from "../lib/dom.js";
export const whatIf = { title: "What if", needs: () => ({}), view: () => h("h1", null, "What if") };

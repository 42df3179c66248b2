// Search without a server. Browsers refuse to start a Worker from a file:// address; there, the
// search runs in a hidden frame of the page instead. The file's name is the one that
// mkdocs-material's plugin `offline` looks for: it would load a script from another host otherwise.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = []; // messages from before the script has run
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<!doctype html>";
      this.frame.addEventListener("load", () => this.run(new URL(address, document.baseURI).href));
      document.body.append(this.frame);
    }

    run(address) {
      const inside = this.frame.contentWindow;
      // In a worker, postMessage sends to the page; in a window it sends to that window.
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.addEventListener("load", () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach((data) => this.postMessage(data));
      });
      script.src = address;
      inside.document.body.append(script);
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.frame.remove();
    }
  };
}

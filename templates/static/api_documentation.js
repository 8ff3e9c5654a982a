"use strict";

const page = document.getElementById("documentation");

SwaggerUIBundle({
  domNode: page,
  url: page.dataset.document,
  validatorUrl: null,
  docExpansion: "list",
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  // The session logs in; requests that change something prove that they come from this page.
  requestInterceptor: (request) => {
    if (new URL(request.url, document.baseURI).origin === location.origin) {
      request.headers["X-CSRFToken"] = page.dataset.csrfToken;
    }
    return request;
  },
});

// Swagger UI has colours for the dark of its own, under this class.
const root = document.documentElement;
const colour = () => root.classList.toggle("dark-mode", root.getAttribute("data-bs-theme") === "dark");
new MutationObserver(colour).observe(root, { attributeFilter: ["data-bs-theme"] });
colour();

document.getElementById("version").addEventListener("change", (event) => event.target.form.submit());

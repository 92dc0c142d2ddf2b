// node browser.js BROWSER FILE...: opens pages as people do and prints what is wrong with each as JSON.
const { basename } = require("node:path");
const puppeteer = require("puppeteer-core");

const VIEWS = [["light", 1280], ["dark", 1280], ["light", 960], ["light", 400], ["dark", 400]];

async function look(page) {
  return page.evaluate(async () => {
    const found = await axe.run({ resultTypes: ["violations"] });
    const seen = [...document.querySelectorAll("*")].filter((one) => one.checkVisibility());
    const cut = seen.filter((one) => one.matches(".badge, td, th, svg, pre") && !one.closest(".hidden, thead"))
      .filter((one) => one.getBoundingClientRect().right > innerWidth + 1);
    const heads = seen.filter((one) => one.matches("thead th") && !/\s/.test(one.textContent.trim()));
    const lines = (one) => {
      const range = document.createRange();
      range.selectNodeContents(one);
      return new Set([...range.getClientRects()].map((box) => Math.round(box.bottom))).size;
    };
    return {
      broken: heads.filter((one) => lines(one) > 1).map((one) => one.textContent),
      violations: found.violations.map((one) => `${one.impact} ${one.id}: ${one.nodes[0].html.slice(0, 120)}`),
      overflow: document.documentElement.scrollWidth - innerWidth,
      cut: cut.map((one) => one.outerHTML.slice(0, 120)),
    };
  });
}

const focused = (page) => page.evaluate(() => document.activeElement.outerHTML.slice(0, 200));
const visible = (page, selector) =>
  page.evaluate((query) => [...document.querySelectorAll(query)].filter((one) => one.checkVisibility()).length, selector);

async function useKeyboard(page) {
  const told = { focus: [] };
  await page.keyboard.press("Tab");
  told.focus.push(await focused(page));
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  told.focus.push(await focused(page));
  told.before = await visible(page, "tr.quiet, section.quiet");
  await page.keyboard.press("Space");
  told.after = await visible(page, "tr.quiet, section.quiet");
  told.loud = await visible(page, "tbody tr:not(.quiet)");
  await page.keyboard.press("Space");
  for (let steps = 0; steps < 200; steps += 1) {
    await page.keyboard.press("Tab");
    const link = await page.evaluate(() => document.activeElement.getAttribute("href"));
    if (/^#m0d\d+$/.test(link)) {
      await page.keyboard.press("Enter");
      await new Promise((resolve) => setTimeout(resolve, 1000));
      told.target = await page.evaluate(() => {
        const { top, bottom } = document.querySelector(":target").getBoundingClientRect();
        return { tag: document.querySelector(":target").tagName, isSeen: top < innerHeight && bottom > 0 };
      });
      break;
    }
  }
  return told;
}

(async () => {
  const [path, ...files] = process.argv.slice(2);
  const browser = await puppeteer.launch({ executablePath: path, args: ["--no-sandbox", "--disable-gpu"] });
  const results = {};
  for (const file of files) {
    const told = (results[basename(file)] = { views: {} });
    for (const [scheme, width] of VIEWS) {
      const page = await browser.newPage();
      await page.setBypassCSP(true); // for axe: the page itself allows no script
      await page.setViewport({ width, height: 900 });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await page.goto(`file://${file}`);
      await page.addScriptTag({ path: require.resolve("axe-core/axe.min.js") });
      told.views[`${scheme} ${width}`] = await look(page);
      if (width > 1000 && scheme === "light" && (await page.$("#only"))) told.keyboard = await useKeyboard(page);
      if (width > 1000) {
        await page.emulateMediaType("print");
        told.printed = await visible(page, "details table");
        told.all = await page.evaluate(() => document.querySelectorAll("details table").length);
      }
      await page.close();
    }
  }
  await browser.close();
  console.log(JSON.stringify(results));
})();

package bulletinboard.web;

import bulletinboard.model.Advertisement;
import bulletinboard.model.Page;
import bulletinboard.model.Statistics;

import java.math.BigDecimal;
import java.util.List;

/** Advertisements as plain text. */
final class AdText {
    static final String HELP =
            """
Bulletin board: advertisements in plain text.

GET    /ads?page=1&size=20         newest first
GET    /ads/ID                     one advertisement
GET    /search?word=bicycle&page=1 advertisements that contain the word
POST   /ads                        title, text, contact, price as a form
PUT    /ads/ID                     the same fields
DELETE /ads/ID
GET    /statistics                 figures over the whole board

curl -d title=Lamp -d 'text=Shines well' -d contact=me@example.org -d price=12.50 http://127.0.0.1:8080/ads
""";

    private AdText() {}

    static String list(List<Advertisement> ads, Page page) {
        StringBuilder text = new StringBuilder(80 * (ads.size() + 1));
        text.append("page ")
                .append(page.number())
                .append(", ")
                .append(ads.size())
                .append(" advertisements\n");
        for (Advertisement ad : ads) {
            text.append('#').append(ad.id()).append('\t').append(ad.title()).append('\t');
            text.append(BigDecimal.valueOf(ad.priceCents(), 2)).append('\n');
        }
        return text.toString();
    }

    static String full(Advertisement ad) {
        StringBuilder text = new StringBuilder(256 + ad.text().length());
        text.append('#').append(ad.id()).append('\t').append(ad.title()).append('\n');
        text.append("price:   ").append(BigDecimal.valueOf(ad.priceCents(), 2)).append('\n');
        text.append("contact: ").append(ad.contact()).append('\n');
        text.append("created: ").append(ad.created()).append("\n\n");
        return text.append(ad.text()).append('\n').toString();
    }

    static String statistics(Statistics figures) {
        StringBuilder text =
                new StringBuilder(256)
                        .append("advertisements: ")
                        .append(figures.count())
                        .append('\n');
        if (figures.count() > 0) {
            text.append("cheapest: ")
                    .append(BigDecimal.valueOf(figures.priceCentsMin(), 2))
                    .append('\n');
            text.append("dearest:  ")
                    .append(BigDecimal.valueOf(figures.priceCentsMax(), 2))
                    .append('\n');
            text.append("mean:     ")
                    .append(BigDecimal.valueOf(Math.round(figures.priceCentsMean()), 2))
                    .append('\n');
            text.append("oldest:   ").append(figures.oldest()).append('\n');
            text.append("newest:   ").append(figures.newest()).append('\n');
        }
        return text.toString();
    }
}

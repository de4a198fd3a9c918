"""The layouts of the structure gold: markup, and what is around a text, as sites have it that such software makes."""

from tests.golden.structure.pages import Layout, colored, numbered

SIDE = "a list of other pages of the manual"
NAV = "navigation of the site"
LEGAL = "legal notice and tools of the site"
OTHERS = "links to other pages"
ASKS = "asks the reader to do something on the site"
ABOUT = "about the author or the post and not the text"

LAYOUTS = {
    "sphinx": Layout(
        """<!DOCTYPE html><html lang="{language}"><head><title>{title} — arc 2.4 documentation</title></head><body>
<div class="related" role="navigation"><h3>Navigation</h3><ul><li class="right"><a href="g">index</a></li>
<li class="right"><a href="n">next chapter</a> |</li><li><a href="i">arc 2.4 documentation</a> »</li></ul></div>
<div class="document"><div class="documentwrapper"><div class="bodywrapper"><div class="body" role="main">
<section id="top"><h1>{title}<a class="headerlink" href="#top" title="Permalink">¶</a></h1>{content}</section>
<div class="clearer"></div></div></div></div><div class="sphinxsidebar" role="navigation"><div class="sphinxsidebarwrapper">
<h3><a href="i">Table of Contents</a></h3><ul><li><a href="#a">Reading one by one</a></li><li><a href="#b">Writing</a></li></ul>
<div id="searchbox" role="search"><h3>Quick search</h3></div></div></div></div>
<div class="footer" role="contentinfo">© Copyright 2026, the arc authors. Created using Sphinx 8.1.</div></body></html>""",
        {
            "next chapter": NAV,
            "Reading one by one": SIDE,
            "Quick search": LEGAL,
            "© Copyright 2026, the arc authors.": LEGAL,
        },
        {
            "h2": '<h2 id="{id}">{}<a class="headerlink" href="#{id}" title="Permalink">¶</a></h2>',
            "li": "<li><p>{}</p></li>",
            "ul": '<ul class="simple">{}</ul>',
            "ol": '<ol class="arabic simple">{}</ol>',
            "dl": '<dl class="simple">{}</dl>',
            "dt": '<dt id="{id}">{}</dt>',
            "dd": "<dd><p>{}</p></dd>",
            "td": "<td><p>{}</p></td>",
            "th": '<th class="head"><p>{}</p></th>',
            "table": '<table class="docutils align-default"><tbody>{}</tbody></table>',
        },
        lambda code: (
            f'<div class="highlight-python notranslate"><div class="highlight"><pre><span></span>{colored(code)}\n</pre></div></div>'
        ),
    ),
    "docbook": Layout(
        """<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "x">
<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{title}</title></head><body><div class="navheader">
<table width="100%" summary="Navigation header"><tr><th colspan="3" align="center">{title}</th></tr><tr><td><a href="p">Prev</a>
</td><th>Part II. Running it</th><td><a href="n">Next</a></td></tr></table><hr/></div><div class="section"><div class="titlepage">
<div><div><h1 class="title" style="clear: both"><a id="top"/>{title}</h1></div></div></div>{content}</div>
<div class="navfooter"><hr/><table width="100%" summary="Navigation footer"><tr><td><a href="p">Previous chapter</a></td><td><a href="u">Up to the book</a></td>
</tr></table></div></body></html>""",
        {"Part II. Running it": NAV, "Previous chapter": NAV, "Up to the book": NAV},
        {
            "h2": '<div class="titlepage"><div><div><h2 class="title"><a id="related.{id}"/>{}</h2></div></div></div>',
            "li": '<li class="listitem"><p>{}</p></li>',
            "ul": '<div class="itemizedlist"><ul class="itemizedlist" style="list-style-type: disc; ">{}</ul></div>',
            "ol": '<div class="orderedlist"><ol class="orderedlist" type="1">{}</ol></div>',
            "dl": '<div class="variablelist"><dl class="variablelist">{}</dl></div>',
            "dt": '<dt><a id="popular-{id}"/><span class="term">{}</span></dt>',
            "dd": "<dd><p>\n  {}\n</p></dd>",
            "table": '<div class="informaltable"><table class="informaltable" border="1"><colgroup><col/></colgroup><tbody>{}</tbody></table></div>',
        },
        lambda code: f'<pre class="programlisting">{code}</pre>',
    ),
    "javadoc": Layout(
        """<!DOCTYPE HTML><html lang="{language}"><head><title>{title} (Arc 2.4 API)</title></head><body>
<header role="banner"><nav role="navigation"><div class="topNav"><ul class="navList" title="Navigation"><li><a href="o">Overview</a></li>
<li><a href="p">Package</a></li><li><a href="h">Help for all classes</a></li></ul></div></nav></header>
<main role="main"><div class="header"><h1 class="title">{title}</h1></div><div class="contentContainer"><ul class="inheritance">
<li>java.lang.Object</li></ul><div class="description"><ul class="blockList"><li class="blockList">{content}</li></ul></div></div></main>
<footer role="contentinfo"><nav role="navigation"><div class="bottomNav"><ul class="navList"><li><a href="o">Overview again</a></li></ul></div></nav>
<p class="legalCopy"><small>Report a bug or suggest an enhancement.</small></p></footer></body></html>""",
        {"Help for all classes": NAV, "Overview again": NAV, "Report a bug or suggest an enhancement.": LEGAL},
        {
            "p": '<div class="block">{}</div>',
            "dt": '<dt><span class="paramLabel">{}</span></dt>',
            "table": '<table class="memberSummary"><caption><span></span></caption><tbody>{}</tbody></table>',
            "th": '<th class="colFirst" scope="col">{}</th>',
            "td": '<td class="colLast"><div class="block">{}</div></td>',
        },
        lambda code: f"<pre>{code}</pre>",
    ),
    "man": Layout(
        """<html><head><title>{title} - manual pages</title></head><body bgcolor="#ffffff">
<table><tr><td><a href="/">Home of the manuals</a></td><td><a href="/s">Search</a></td></tr></table>
<h1 align="center">{title}</h1><hr>{content}<hr><p><font size="-1">This page was made by man2html on 3 May.</font></p></body></html>""",
        {"Home of the manuals": NAV, "This page was made by man2html": LEGAL},
        {
            "h2": '<h2>{}<a name="{id}"></a></h2>',
            "p": '<p style="margin-left:11%; margin-top: 1em">{}</p>',
            "dt": "<dt><b>{}</b></dt>",
            "dl": "<dl compact>{}</dl>",
        },
        lambda code: f'<pre class="synopsis">{code}</pre>',
    ),
    "mediawiki": Layout(
        """<!DOCTYPE html><html class="client-nojs" lang="{language}"><head><title>{title} - Wiki</title><meta property="og:title" content="{title} - Wiki"></head>
<body class="mediawiki ltr sitedir-ltr ns-0 skin-vector"><div id="mw-page-base" class="noprint"></div><div id="content" class="mw-body" role="main">
<h1 id="firstHeading" class="firstHeading">{title}</h1><div id="bodyContent" class="vector-body"><div id="siteSub" class="noprint">From the wiki of bridges</div>
<a class="mw-jump-link" href="#mw-head">Jump to navigation</a><div id="mw-content-text" lang="{language}"><div class="mw-parser-output">
<div id="toc" class="toc" role="navigation"><div class="toctitle"><h2>Contents</h2></div><ul><li class="toclevel-1"><a href="#a"><span class="tocnumber">1</span>
<span class="toctext">First chapter of all</span></a></li></ul></div>{content}<div class="navbox" role="navigation"><table class="nowraplinks"><tr><th>Other articles</th>
<td><ul><li><a href="x">Arch bridges of the world</a></li></ul></td></tr></table></div></div></div>
<div id="catlinks" class="catlinks"><a href="c">Categories</a>: <ul><li><a href="c">Bridges by type</a></li></ul></div></div></div>
<div id="mw-navigation"><nav id="p-tb" class="mw-portlet vector-menu" role="navigation"><h3>Tools</h3><ul><li><a href="w">What links here</a></li></ul></nav></div>
<footer id="footer" class="mw-footer" role="contentinfo"><ul><li>This page was last edited on 3 May 2026.</li></ul></footer></body></html>""",
        {
            "Jump to navigation": NAV,
            "First chapter of all": SIDE,
            "Arch bridges of the world": OTHERS,
            "Bridges by type": OTHERS,
            "What links here": NAV,
            "This page was last edited": LEGAL,
            "edit source": ASKS,
        },
        {
            "h2": '<h2><span class="mw-headline" id="{id}">{}</span><span class="mw-editsection"><span class="mw-editsection-bracket">[</span><a href="e">edit source</a>]</span></h2>',
            "h3": '<h3><span class="mw-headline" id="{id}">{}</span></h3>',
            "table": '<table class="wikitable sortable"><tbody>{}</tbody></table>',
        },
        lambda code: f'<div class="mw-highlight mw-content-ltr"><pre><span></span>{colored(code)}\n</pre></div>',
        titled=False,
    ),
    "discourse": Layout(
        """<!DOCTYPE html><html lang="{language}"><head><title>{title} - Support - Community</title><meta property="og:type" content="website">
<meta property="og:title" content="{title}"></head><body class="crawler"><header><a href="/">Community home</a></header><div id="main-outlet" class="wrap">
<div id="topic-title"><h1><a href="/t/1">{title}</a></h1><div class="topic-category"><a href="/c">Support desk</a></div></div>
<div itemscope itemtype="http://schema.org/DiscussionForumPosting"><div id="post_1" class="topic-body crawler-post"><div class="crawler-post-meta">
<span class="creator"><a href="/u/ann"><span>Ann_of_the_mill</span></a></span><time class="post-time">3 May 2026, 8:12am</time><span itemprop="position">1</span></div>
<div class="post" itemprop="text">{content}</div><div class="post-likes">14 Likes of this post</div></div></div>
<div id="related-topics" class="more-topics__list"><h3 id="related-topics-title">Related topics</h3><table class="topic-list"><tbody><tr><td><a href="/t/2">Fan is always on</a></td>
<td>12 replies there</td></tr></tbody></table></div></div><footer class="container"><nav><a href="/tos">Terms of Service</a></nav></footer></body></html>""",
        {
            "Community home": NAV,
            "Ann_of_the_mill": ABOUT,
            "14 Likes of this post": ABOUT,
            "Fan is always on": OTHERS,
            "Terms of Service": LEGAL,
        },
        {
            "table": '<div class="md-table"><table>{}</table></div>',
            "dt": "<p><strong>{}</strong></p>",
            "dd": "<p>{}</p>",
            "dl": "{}",
        },
        lambda code: f'<pre><code class="lang-bash">{code}\n</code></pre>',
        titled=False,
    ),
    "phpbb": Layout(
        """<!DOCTYPE html><html dir="ltr" lang="{language}"><head><title>{title} - Board</title></head><body id="phpbb" class="nojs notouch section-viewtopic ltr">
<div id="wrap" class="wrap"><div id="page-header"><div class="headerbar" role="banner"><a href="#start_here" class="skiplink">Skip to content</a><p>The board of old notebooks</p></div>
<div class="navbar" role="navigation"><ul id="nav-main" class="nav-main linklist"><li><a href="f">Board index of all</a></li></ul></div></div>
<div id="page-body" class="page-body" role="main"><h2 class="topic-title"><a href="t">{title}</a></h2><div class="action-bar bar-top"><a class="button" href="r">Post Reply here</a></div>
<div id="p1" class="post has-profile bg2"><div class="inner"><dl class="postprofile" id="profile1"><dt class="has-profile-rank"><a class="username" href="u">millwright</a></dt>
<dd class="profile-posts"><strong>Posts:</strong> 4711 so far</dd></dl><div class="postbody"><div id="post_content1"><p class="author">by millwright » 3 May 2026, 08:12</p>
<div class="content">{content}</div><div id="sig1" class="signature">Oil is thicker than water.</div></div></div></div></div>
<div class="panel"><h3>Who is online at the moment</h3></div></div><div id="page-footer" class="page-footer" role="contentinfo"><p>Powered by phpBB® Forum Software</p></div></div></body></html>""",
        {
            "Skip to content": NAV,
            "Board index of all": NAV,
            "Post Reply here": ASKS,
            "4711 so far": ABOUT,
            "Oil is thicker than water.": ABOUT,
            "Who is online at the moment": LEGAL,
            "Powered by phpBB® Forum Software": LEGAL,
        },
        {
            "p": "{}<br><br>",
            "h2": '<span style="font-size:150%"><strong class="text-strong">{}</strong></span><br>',
            "dl": "{}",
            "dt": "<strong>{}</strong><br>",
            "dd": "{}<br>",
        },
        lambda code: (
            f'<div class="codebox"><p>Code: <a href="#">Select all</a></p><pre><code>{code}\n</code></pre></div>'
        ),
    ),
    "qa": Layout(
        """<!DOCTYPE html><html itemscope itemtype="https://schema.org/QAPage" class="html__responsive" lang="{language}"><head><title>{title} - Q&amp;A</title>
<meta property="og:type" content="website"></head><body class="question-page unified-theme"><header class="s-topbar"><nav><a href="/">Products for teams</a></nav></header>
<div class="container"><div id="left-sidebar" class="left-sidebar"><nav role="navigation"><ol class="nav-links"><li><a href="/q">All questions here</a></li></ol></nav></div>
<div id="content"><div id="question-header"><h1 itemprop="name"><a class="question-hyperlink" href="/q/1">{title}</a></h1><a class="s-btn" href="/ask">Ask your own question</a></div>
<div id="mainbar" role="main"><div class="question js-question" id="question"><div class="post-layout"><div class="votecell"><div class="js-vote-count">314</div></div>
<div class="postcell"><div class="s-prose js-post-body" itemprop="text">{content}</div><div class="post-taglist"><ul><li><a href="/t" class="post-tag">list-handling</a></li></ul></div>
<div class="post-signature"><div class="user-details"><a href="/u">Miller of the hill</a><span class="reputation-score">12.5k</span></div></div></div></div></div></div>
<div id="sidebar" role="complementary"><div class="module sidebar-linked"><h4>Linked</h4><a href="/q/2" class="question-hyperlink">Why is my loop slow?</a></div></div></div></div>
<footer id="footer" class="site-footer"><p>User contributions licensed under terms.</p></footer></body></html>""",
        {
            "Products for teams": NAV,
            "All questions here": NAV,
            "Ask your own question": ASKS,
            "list-handling": ABOUT,
            "Miller of the hill": ABOUT,
            "Why is my loop slow?": OTHERS,
            "User contributions licensed under terms.": LEGAL,
        },
        {"table": '<div class="s-table-container"><table class="s-table">{}</table></div>'},
        lambda code: (
            f'<pre class="lang-py s-code-block"><code class="hljs language-python">{colored(code)}\n</code></pre>'
        ),
        titled=False,
    ),
    "recipe": Layout(
        """<!DOCTYPE html><html lang="{language}"><head><title>{title} | Kitchen</title><meta property="og:type" content="article"><script type="application/ld+json">
{"@type": "Recipe", "name": "{title}"}</script></head><body class="post-template-default single"><header class="site-header"><nav class="nav-primary"><ul class="menu"><li>
<a href="/d">Dinners of the week</a></li></ul></nav></header><div class="site-inner"><main class="content"><article class="post entry" itemscope><header class="entry-header">
<h1 class="entry-title">{title}</h1><p class="entry-meta">By <span class="entry-author">Carla Cook</span></p></header><div class="entry-content">
<a class="wprm-recipe-jump" href="#r">Jump to Recipe</a><div id="r" class="wprm-recipe-container">{content}</div><div class="share-buttons"><a href="x">Pin it for later</a></div></div>
<footer class="entry-footer"><p>Filed Under: <a href="/s">Soups and stews</a></p></footer></article><section class="related-posts"><h3>You may also like</h3><ul><li>
<a href="/x">Bean stew for a crowd</a></li></ul></section><div id="respond" class="comment-respond"><h3>Leave a Reply to us</h3></div></main><aside class="sidebar">
<h3>Subscribe to the newsletter</h3></aside></div><footer class="site-footer"><p>Kitchen © 2026, all rights reserved</p></footer></body></html>""",
        {
            "Dinners of the week": NAV,
            "Jump to Recipe": NAV,
            "Pin it for later": ASKS,
            "Soups and stews": OTHERS,
            "Bean stew for a crowd": OTHERS,
            "Leave a Reply to us": ASKS,
            "Subscribe to the newsletter": ASKS,
            "Kitchen © 2026, all rights reserved": LEGAL,
        },
        {
            "ul": '<div class="wprm-recipe-ingredient-group"><ul class="wprm-recipe-ingredients">{}</ul></div>',
            "ol": '<div class="wprm-recipe-instruction-group"><ol class="wprm-recipe-instructions">{}</ol></div>',
            "li": '<li class="wprm-recipe-ingredient"><span class="wprm-recipe-ingredient-name">{}</span></li>',
            "table": '<figure class="wp-block-table"><table><tbody>{}</tbody></table></figure>',
            "h2": '<h3 class="wprm-recipe-header">{}</h3>',
        },
        titled=False,
    ),
    "github": Layout(
        """<!DOCTYPE html><html lang="{language}" data-color-mode="auto"><head><title>mill/{title}</title><meta property="og:type" content="object"></head><body class="logged-out">
<div class="header-wrapper"><a href="#start-of-content" class="p-3 show-on-focus js-skip-to-content">Skip to content</a><header class="HeaderMktg"><nav aria-label="Global"><ul><li>
<a href="/f">Product features</a></li></ul></nav></header></div><div class="application-main"><main id="js-repo-pjax-container"><div class="repository-content">
<table aria-labelledby="folders-and-files"><tbody><tr><td><a href="s">src</a></td><td>Mend the parser for odd dates</td><td>3 weeks ago</td></tr></tbody></table>
<div class="Box"><article class="markdown-body entry-content container-lg" itemprop="text"><div class="markdown-heading" dir="auto"><h1 class="heading-element">{title}</h1>
<a id="user-content-top" class="anchor" href="#top"></a></div>{content}</article></div></div><div class="Layout-sidebar"><h2>About</h2><p>No description of it yet.</p><h2>Releases</h2>
<a href="/r">12 tags so far</a></div></main></div><footer class="footer" role="contentinfo"><p>© 2026 Hub, Inc.</p></footer></body></html>""",
        {
            "Skip to content": NAV,
            "Product features": NAV,
            "Mend the parser for odd dates": "the list of files beside the text",
            "12 tags so far": ABOUT,
            "© 2026 Hub, Inc.": LEGAL,
        },
        {
            "h2": '<div class="markdown-heading" dir="auto"><h2 tabindex="-1" class="heading-element" dir="auto">{}</h2><a id="user-content-{id}" class="anchor" href="#{id}"></a></div>',
            "table": '<markdown-accessiblity-table><table tabindex="0">{}</table></markdown-accessiblity-table>',
            "ul": '<ul dir="auto">{}</ul>',
            "dl": '<ul dir="auto">{}</ul>',
            "dt": "<li><p><strong>{}</strong></p>",
            "dd": "<p>{}</p></li>",
        },
        lambda code: (
            f'<div class="highlight highlight-source-shell notranslate position-relative overflow-auto" dir="auto"><pre>{colored(code)}</pre><div class="zeroclipboard-container"><clipboard-copy aria-label="Copy"></clipboard-copy></div></div>'
        ),
        titled=False,
    ),
    "mkdocs": Layout(
        """<!doctype html><html lang="{language}" class="no-js"><head><title>{title} - Manual</title><meta property="og:title" content="{title}"></head><body dir="ltr">
<div data-md-component="skip"><a href="#top" class="md-skip">Skip to content</a></div><header class="md-header"><nav class="md-header__inner md-grid"><a href="/">Manual of the tool</a></nav></header>
<div class="md-container"><main class="md-main"><div class="md-main__inner md-grid"><div class="md-sidebar md-sidebar--primary"><nav class="md-nav"><ul class="md-nav__list"><li class="md-nav__item">
<a href="/i">Getting it running</a></li></ul></nav></div><div class="md-content"><article class="md-content__inner md-typeset"><a href="/e" class="md-content__button md-icon" title="Edit this page"></a>
<h1 id="top">{title}<a class="headerlink" href="#top">&para;</a></h1>{content}<aside class="md-source-file"><span>Last update: May 3, 2026</span></aside></article></div></div></main>
<footer class="md-footer"><nav class="md-footer__inner"><a href="/n">Next: More of it</a></nav><p>Made with Material for MkDocs</p></footer></div></body></html>""",
        {
            "Skip to content": NAV,
            "Manual of the tool": NAV,
            "Getting it running": SIDE,
            "Last update: May 3, 2026": ABOUT,
            "Next: More of it": NAV,
            "Made with Material for MkDocs": LEGAL,
        },
        {
            "h2": '<h2 id="{id}">{}<a class="headerlink" href="#{id}">&para;</a></h2>',
            "quote": '<div class="admonition note"><p>{}</p></div>',
            "table": '<div class="md-typeset__scrollwrap"><div class="md-typeset__table"><table>{}</table></div></div>',
        },
        numbered,
        titled=False,
    ),
    "api": Layout(
        """<!DOCTYPE html><html lang="{language}"><head><title>{title} | API reference</title></head><body><div class="page"><div class="toc-wrapper"><ul id="toc" class="toc-list-h1">
<li><a href="#intro">Introduction to it</a></li><li><a href="#auth">Authentication by key</a></li></ul></div><div class="page-wrapper"><div class="content">
<h1 id="top">{title}</h1>{content}</div><div class="dark-box"><div class="lang-selector"><a href="#" data-language-name="shell">Shell samples</a></div></div></div>
<div class="cookie-banner">We use cookies for statistics.</div></div></body></html>""",
        {
            "Authentication by key": SIDE,
            "Shell samples": NAV,
            "We use cookies for statistics.": LEGAL,
        },
        {"h2": '<h2 id="tags-{id}">{}</h2>', "td": "<td>\n<div>{}</div>\n</td>"},
        lambda code: f'<figure class="highlight"><pre class="highlight shell"><code>{code}</code></pre></figure>',
    ),
    "blog": Layout(
        """<!DOCTYPE html><html lang="{language}"><head><title>{title} | Mill blog</title><meta property="og:type" content="article"></head><body class="single single-post has-sidebar">
<header id="masthead"><nav id="site-navigation" class="main-navigation"><div class="menu"><ul><li><a href="/a">About the mill</a></li></ul></div></nav></header><div id="primary" class="content-area">
<main id="main" class="site-main"><article class="post type-post category-howto tag-linux"><header class="entry-header"><h1 class="entry-title">{title}</h1><div class="entry-meta">
<span class="posted-on">Posted on <time>May 3, 2026</time></span><span class="byline"> by Ann Miller</span></div></header><div class="entry-content">{content}<div class="sharedaddy"><h3>Share this:</h3>
<ul><li><a href="x">Click to share it</a></li></ul></div></div><footer class="entry-footer"><span class="cat-links">Posted in <a href="/h">Howto corner</a></span></footer></article>
<nav class="post-navigation"><a href="/p">Previous Post: On flour</a></nav><div id="comments" class="comments-area"><h2>3 thoughts on it</h2><ol class="comment-list"><li><p>Great post, thanks for sharing!</p></li></ol></div></main></div>
<aside id="secondary" class="widget-area"><section class="widget"><h2>Recent Posts</h2><ul><li><a href="/q">On water wheels</a></li></ul></section></aside><footer id="colophon">Proudly powered by WordPress</footer></body></html>""",
        {
            "About the mill": NAV,
            "by Ann Miller": ABOUT,
            "Click to share it": ASKS,
            "Howto corner": OTHERS,
            "Previous Post: On flour": OTHERS,
            "Great post, thanks for sharing!": "a comment that says nothing of the text",
            "On water wheels": OTHERS,
            "Proudly powered by WordPress": LEGAL,
        },
        {
            "h2": '<h2 class="wp-block-heading">{}</h2>',
            "table": '<figure class="wp-block-table"><table><tbody>{}</tbody></table></figure>',
            "ul": '<ul class="wp-block-list">{}</ul>',
        },
        lambda code: f'<pre class="wp-block-code"><code>{code}</code></pre>',
        titled=False,
    ),
    "nineties": Layout(
        """<HTML><HEAD><TITLE>{title}</TITLE></HEAD><BODY BGCOLOR=white><TABLE WIDTH=100%><TR><TD WIDTH=120 VALIGN=top><A HREF=index.html>Start of the site</A><BR>
<A HREF=news.html>News of the site</A></TD><TD><H1>{title}</H1>{content}<HR><FONT SIZE=-1>Best viewed with any browser.</FONT></TD></TR></TABLE></BODY></HTML>""",
        {"News of the site": NAV, "Best viewed with any browser.": LEGAL},
        {
            "h2": "<H2>{}</H2>",
            "p": "<P>{}",
            "li": "<LI>{}</li>",
            "ul": "<UL>{}</UL>",
            "dl": "<DL>{}</DL>",
            "dt": "<DT>{}",
            "dd": "<DD>{}",
            "table": "<TABLE BORDER=1>{}</TABLE>",
            "tr": "<TR>{}",
            "td": "<TD>{}",
            "th": "<TH>{}",
        },
        lambda code: f"<PRE>\n{code}\n</PRE>",
    ),
    "faq": Layout(
        """<!DOCTYPE html><html lang="{language}"><head><title>{title} | Help center</title></head><body><header class="header" role="banner"><a href="/">Help center home</a></header>
<main role="main"><div class="container"><nav class="sub-nav"><ol class="breadcrumbs"><li><a href="/h">All collections</a></li></ol></nav><div class="article-container">
<div class="article"><h1>{title}</h1><div class="article-body">{content}</div><div class="article-votes"><span>Was this article helpful?</span></div>
<div class="article-more-questions">Have more questions? <a href="/r">Submit a request</a></div></div></div></div></main><footer class="footer"><a href="/">Library of the town</a></footer></body></html>""",
        {
            "Help center home": NAV,
            "All collections": NAV,
            "Was this article helpful?": ASKS,
            "Submit a request": ASKS,
            "Library of the town": LEGAL,
        },
        {"dl": '<div class="accordion">{}</div>', "dt": "<details><summary>{}</summary>", "dd": "<p>{}</p></details>"},
    ),
}

TEXTS = {
    "sphinx": ("python_guide", "cli_manual", "settings_de", "changelog", "answer_merge"),
    "docbook": ("python_guide", "cli_manual", "settings_de", "shell_zh"),
    "javadoc": ("python_guide", "rest_api", "settings_de"),
    "man": ("cli_manual", "settings_de", "shell_zh"),
    "mediawiki": ("wiki_bridge", "shell_zh", "faq_library", "settings_de"),
    "discourse": ("forum_battery", "answer_merge", "settings_de", "recipe_soup"),
    "phpbb": ("forum_battery", "answer_merge", "shell_zh"),
    "qa": ("answer_merge", "forum_battery", "python_guide", "shell_zh"),
    "recipe": ("recipe_soup",),
    "github": ("readme_tool", "changelog", "python_guide", "shell_zh", "cli_manual"),
    "mkdocs": ("readme_tool", "python_guide", "rest_api", "settings_de", "cli_manual"),
    "api": ("rest_api", "cli_manual", "readme_tool", "settings_de"),
    "blog": ("answer_merge", "recipe_soup", "wiki_bridge", "python_guide", "shell_zh"),
    "nineties": ("wiki_bridge", "cli_manual", "faq_library", "recipe_soup"),
    "faq": ("faq_library", "settings_de", "rest_api", "python_guide"),
}
"""The texts that each layout is given."""
